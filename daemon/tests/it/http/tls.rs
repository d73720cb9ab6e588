//! Who is spoken to over TLS, with certificates that are made for the test.

use super::{
    daemon_with, echo,
    mock::{Era, Mock},
    ready,
};
use crate::support::server_when;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
    version::TLS12,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, sync::Arc};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn issue(
        &self,
        name: &str,
        expired: bool,
    ) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if expired {
            params.not_before = rcgen::date_time_ymd(2001, 1, 1);
            params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.file("client.pem"), certificate.pem()).unwrap();
        fs::write(self.file("client.key"), key.serialize_pem()).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        (certificate.der().clone(), key.into())
    }

    fn config(&self, name: &str, expired: bool, wants_client: bool) -> ServerConfig {
        let (certificate, key) = self.issue(name, expired);
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = if wants_client {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        builder.with_single_cert(vec![certificate], key).unwrap()
    }
}

async fn server(config: ServerConfig) -> Mock {
    let tls = TlsAcceptor::from(Arc::new(config));
    Mock::start_with(Era::Modern, 0, Some(tls), |_| None).await
}

/// Why there is no talking to it.
async fn refusal(mock: &Mock, keys: Value) -> String {
    let daemon = daemon_with(&mock.url, keys);
    let nexus = daemon.client().await;
    let server = server_when(&nexus, "t", |server| server.last_failure.is_some()).await;
    assert!(mock.all().is_empty(), "something was told");
    server.last_failure.unwrap().message
}

/// 85.
#[tokio::test]
async fn a_server_is_spoken_to_only_if_it_is_who_it_says() {
    let authority = Authority::new();
    let ca = json!({"tls": {"ca": authority.file("ca.pem")}});
    let good = server(authority.config("localhost", false, false)).await;
    {
        let (_daemon, nexus) = ready(&good.url, ca.clone()).await;
        assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
    }
    let unknown = server(authority.config("localhost", false, false)).await;
    let message = refusal(&unknown, json!({})).await;
    assert!(message.contains("UnknownIssuer"), "{message}");
    let expired = server(authority.config("localhost", true, false)).await;
    let message = refusal(&expired, ca.clone()).await;
    assert!(message.contains("expired"), "{message}");
    let other = server(authority.config("example.com", false, false)).await;
    let message = refusal(&other, ca.clone()).await;
    assert!(message.contains("not valid for name"), "{message}");
    // Only where it is written so does it not matter, and that is told.
    let (daemon, nexus) = ready(&other.url, json!({"tls": {"verify": false}})).await;
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
    assert!(
        daemon.log().contains("anybody could answer"),
        "{}",
        daemon.log()
    );
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_of_ours_gets_it() {
    let authority = Authority::new();
    let mock = server(authority.config("localhost", false, true)).await;
    let message = refusal(&mock, json!({"tls": {"ca": authority.file("ca.pem")}})).await;
    assert!(message.contains("ertificate"), "{message}");
    let tls = json!({"ca": authority.file("ca.pem"), "cert": authority.file("client.pem"), "key": authority.file("client.key")});
    let (_daemon, nexus) = ready(&mock.url, json!({"tls": tls})).await;
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
}

#[tokio::test]
async fn a_version_that_is_too_old_is_not_spoken() {
    let authority = Authority::new();
    let (certificate, key) = authority.issue("localhost", false);
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(&[&TLS12]).unwrap();
    let config = builder
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    let mock = server(config.unwrap()).await;
    let ca = authority.file("ca.pem");
    let message = refusal(&mock, json!({"tls": {"ca": ca, "min_version": "1.3"}})).await;
    assert!(message.contains("cannot be reached"), "{message}");
    let (_daemon, nexus) = ready(&mock.url, json!({"tls": {"ca": ca}})).await;
    assert_eq!(echo(&nexus, "x").await.unwrap(), "x");
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let authority = Authority::new();
    let mock = server(authority.config("localhost", false, false)).await;
    let message = refusal(&mock, json!({"tls": {"ca": "/nowhere/ca.pem"}})).await;
    assert!(message.contains("/nowhere/ca.pem"), "{message}");
    let cert = authority.file("client.pem");
    let message = refusal(&mock, json!({"tls": {"cert": cert, "key": cert}})).await;
    assert!(
        message.contains("the key") && message.contains("client.pem"),
        "{message}"
    );
}

/// One connection carries them all, and a call that is taken back costs the others nothing.
#[tokio::test]
async fn many_calls_share_one_connection_where_the_server_can() {
    let authority = Authority::new();
    let mut config = authority.config("localhost", false, false);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tls = TlsAcceptor::from(Arc::new(config));
    let mock = Mock::start_with(Era::Modern, 0, Some(tls), |seen| {
        let never = super::Answer::events().part(super::Part::Hang);
        (seen.body["params"]["arguments"]["message"] == "never").then_some(never)
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({"tls": {"ca": authority.file("ca.pem")}})).await;
    let calls = (0..100).map(|n| {
        let nexus = nexus.clone();
        tokio::spawn(async move {
            let said = if n % 10 == 0 { "never" } else { "now" };
            let limit = std::time::Duration::from_secs(if n % 10 == 0 { 1 } else { 60 });
            tokio::time::timeout(limit, echo(&nexus, said)).await
        })
    });
    for (n, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        let answer = call.await.unwrap();
        assert_eq!(answer.is_err(), n % 10 == 0);
        assert!(answer.is_err() || answer.unwrap().unwrap() == "now");
    }
    let connections: std::collections::HashSet<_> =
        mock.all().iter().map(|seen| seen.from).collect();
    assert_eq!(connections.len(), 1);
}
