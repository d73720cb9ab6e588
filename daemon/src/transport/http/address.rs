//! Where a server is: its name becomes addresses here, and those that are found good are connected to.

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    time::Duration,
};
use tokio::time::Instant;

/// For so long the last addresses of a name are good while it cannot be looked up.
const STALE: Duration = Duration::from_secs(300);

/// Looks up names.
pub trait Lookup: Send + Sync {
    /// The addresses of a name.
    fn lookup(&self, host: String, port: u16) -> BoxFuture<'_, io::Result<Vec<SocketAddr>>>;
}

/// As the system does it.
#[derive(Debug)]
pub struct System;

impl Lookup for System {
    fn lookup(&self, host: String, port: u16) -> BoxFuture<'_, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// The addresses of the servers that were looked up.
pub struct Addresses {
    lookup: Box<dyn Lookup>,
    known: Mutex<HashMap<String, Known>>,
}

impl std::fmt::Debug for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addresses").finish_non_exhaustive()
    }
}

struct Known {
    addresses: Vec<IpAddr>,
    at: Instant,
    /// It was somewhere on the internet when it was first looked up.
    public: bool,
}

impl Addresses {
    /// With a way of one's own to look up names.
    pub fn new(lookup: Box<dyn Lookup>) -> Self {
        Self {
            lookup,
            known: Mutex::default(),
        }
    }

    /// Where a host is that the operator has typed: only these may be connected to.
    ///
    /// An address is taken as it was typed. A name may stand for a machine nearby, but never for a place
    /// that only machines talk to (link-local, multicast), and one that stood for a public machine does
    /// not become a private one: whoever answers for the name must not reach into the operator's network.
    pub async fn find(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let found = self.lookup.lookup(host.to_owned(), port).await;
        let found = match found {
            Ok(found) if !found.is_empty() => found,
            failed => {
                let known = self.known.lock();
                let fresh = known.get(host).filter(|known| known.at.elapsed() < STALE);
                return match (fresh, failed) {
                    (Some(known), _) => Ok(with_port(&known.addresses, port)),
                    (None, Err(error)) => {
                        let message = format!("cannot look up {host}: {error}");
                        Err(io::Error::new(error.kind(), message))
                    }
                    (None, Ok(_)) => Err(io::Error::new(
                        io::ErrorKind::NotFound,
                        format!("{host} has no address"),
                    )),
                };
            }
        };
        let addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
        self.check(host, addresses)
            .map(|addresses| with_port(&addresses, port))
    }

    fn check(&self, host: &str, found: Vec<IpAddr>) -> io::Result<Vec<IpAddr>> {
        let refused = |why: &str| {
            let message = format!("{host} is not connected to: it has become {why}");
            Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
        };
        let good: Vec<_> = found.into_iter().filter(|ip| !is_special(*ip)).collect();
        if good.is_empty() {
            return refused("an address that no server has");
        }
        let mut known = self.known.lock();
        let now_public = good.iter().all(|ip| !is_private(*ip));
        if known.get(host).is_some_and(|before| before.public) && !now_public {
            return refused("an address of your own network");
        }
        let entry = Known {
            addresses: good.clone(),
            at: Instant::now(),
            public: now_public,
        };
        known.insert(host.to_owned(), entry);
        Ok(good)
    }
}

fn with_port(addresses: &[IpAddr], port: u16) -> Vec<SocketAddr> {
    let place = |ip: &IpAddr| SocketAddr::new(*ip, port);
    addresses.iter().map(place).collect()
}

/// The address that is meant: IPv4 may be written as IPv6.
fn plain(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

/// An address that is no server's: of this link only, of many, of none. Clouds tell secrets there.
fn is_special(ip: IpAddr) -> bool {
    match plain(ip) {
        IpAddr::V4(v4) => {
            v4.is_link_local() || v4.is_multicast() || v4.is_broadcast() || v4.octets()[0] == 0
        }
        IpAddr::V6(v6) => {
            v6.is_multicast() || v6.is_unspecified() || (v6.segments()[0] & 0xffc0) == 0xfe80
        }
    }
}

/// An address in somebody's own network, or on this machine.
fn is_private(ip: IpAddr) -> bool {
    match plain(ip) {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            v4.is_private() || v4.is_loopback() || (a == 100 && (64..128).contains(&b))
        }
        IpAddr::V6(v6) => v6 == Ipv6Addr::LOCALHOST || (v6.segments()[0] & 0xfe00) == 0xfc00,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::VecDeque, sync::Arc};

    type Answer = Result<&'static [&'static str], ()>;

    struct Script(Arc<Mutex<VecDeque<Answer>>>);

    impl Lookup for Script {
        fn lookup(&self, _: String, port: u16) -> BoxFuture<'_, io::Result<Vec<SocketAddr>>> {
            let next = self.0.lock().pop_front().unwrap();
            let next = next.map_err(|()| io::Error::other("no such host"));
            Box::pin(async move {
                let parse = |ip: &&str| SocketAddr::new(ip.parse().unwrap(), port);
                next.map(|ips| ips.iter().map(parse).collect())
            })
        }
    }

    fn script(answers: &[Answer]) -> Addresses {
        let answers = answers.iter().copied().collect();
        Addresses::new(Box::new(Script(Arc::new(Mutex::new(answers)))))
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_cannot_be_looked_up_is_where_it_was_for_a_while() {
        let addresses = script(&[Ok(&["93.184.216.34"]), Err(()), Ok(&[]), Err(())]);
        let first = addresses.find("example.com", 443).await.unwrap();
        for _ in 0..2 {
            assert_eq!(addresses.find("example.com", 443).await.unwrap(), first);
        }
        tokio::time::advance(STALE).await;
        let error = addresses.find("example.com", 443).await.unwrap_err();
        assert!(error.to_string().contains("cannot look up"), "{error}");
    }

    #[tokio::test]
    async fn a_public_name_does_not_become_a_private_machine() {
        for private in [
            &["10.0.0.1"][..],
            &["127.0.0.1"],
            &["::1"],
            &["fd00::1"],
            &["::ffff:192.168.0.1"],
            &["93.184.216.34", "10.0.0.1"],
            &["100.64.0.1"],
        ] {
            let addresses = script(&[Ok(&["93.184.216.34"]), Ok(private), Ok(&["1.1.1.1"])]);
            addresses.find("x.test", 80).await.unwrap();
            let error = addresses.find("x.test", 80).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            addresses.find("x.test", 80).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_name_may_be_nearby_but_never_a_place_that_tells_secrets() {
        let near = script(&[Ok(&["192.168.1.2"]), Ok(&["192.168.1.3"])]);
        near.find("nas.local", 80).await.unwrap();
        near.find("nas.local", 80).await.unwrap();
        for special in [
            "169.254.169.254",
            "fe80::1",
            "0.0.0.0",
            "224.0.0.1",
            "::ffff:169.254.169.254",
        ] {
            let answer: &'static [&'static str] = Vec::leak(vec![special]);
            let addresses = script(&[Ok(answer)]);
            assert!(addresses.find("x.test", 80).await.is_err(), "{special}");
        }
        // What the operator has typed himself is his business.
        let typed = script(&[]).find("169.254.169.254", 80).await.unwrap();
        assert_eq!(typed.len(), 1);
    }
}
