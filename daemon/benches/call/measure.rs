//! The rounds, and the table.

use crate::{
    cores::Cores,
    peers::{Client, Kind, Peer, nexusctl},
};
use hdrhistogram::Histogram;
use tokio::time::Instant;

const WARM_UP: usize = 500;
const CALLS: usize = 2000;
const AGENTS: usize = 16;
const CALLS_EACH: usize = 500;

/// One round of one kind.
#[derive(Clone, Copy, Default)]
struct Round {
    p50: f64,
    p99: f64,
    rate: f64,
    cpu: f64,
    rate_16: f64,
    cpu_16: f64,
    memory: f64,
}

/// What is measured, and what it is called.
const KINDS: [(Kind, &str); 12] = [
    (Kind::Relay, "bare relay"),
    (Kind::Tonic, "bare tonic"),
    (Kind::Nexusd(1), "nexusd, gRPC"),
    (Kind::Nexusd(2), "nexusd --threads 2, gRPC"),
    (Kind::Http, "HTTP server, directly"),
    (Kind::Bridge, "bare bridge, HTTP server"),
    (Kind::NexusdHttpLines, "nexusd, lines, HTTP server"),
    (Kind::NexusdHttp, "nexusd, gRPC, HTTP server"),
    (Kind::Lines, "nexusd, lines"),
    (Kind::Door, "nexusd, HTTP"),
    (Kind::Copier, "bare copier, bare relay"),
    (Kind::Mcp, "nexusctl mcp, nexusd"),
];

/// All of them, or those that have one of these texts in their names.
pub(crate) fn run(rounds: usize, only: &[&str], cores: &Cores) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut all: Vec<Vec<Round>> = vec![Vec::new(); KINDS.len()];
        for _ in 0..rounds {
            for ((kind, name), results) in KINDS.iter().zip(&mut all) {
                let is_wanted = only.is_empty() || only.iter().any(|text| name.contains(text));
                let is_missing = *kind == Kind::Mcp && !nexusctl().exists();
                results.push(match is_wanted && !is_missing {
                    true => round(*kind, cores).await,
                    false => Round::default(),
                });
            }
        }
        let medians: Vec<Round> = all.iter().map(|rounds| median(rounds)).collect();
        print(rounds, &medians);
    });
}

async fn round(kind: Kind, cores: &Cores) -> Round {
    let mut round = one_call(kind, cores).await;
    // The relay takes one connection.
    if !matches!(kind, Kind::Relay | Kind::Copier) {
        many_agents(kind, cores, &mut round).await;
    }
    round
}

async fn one_call(kind: Kind, cores: &Cores) -> Round {
    let home = tempfile::tempdir().unwrap();
    cores.for_peer();
    let peer = Peer::start(kind, home.path()).await;
    let mut client = peer.client().await;
    cores.for_client();
    for _ in 0..WARM_UP {
        client.call().await;
    }
    let mut times = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
    let (cpu, started) = (peer.cpu(), Instant::now());
    for _ in 0..CALLS {
        let call = Instant::now();
        client.call().await;
        times.saturating_record(call.elapsed().as_nanos() as u64);
    }
    let took = started.elapsed();
    Round {
        p50: times.value_at_quantile(0.5) as f64 / 1000.0,
        p99: times.value_at_quantile(0.99) as f64 / 1000.0,
        rate: CALLS as f64 / took.as_secs_f64(),
        cpu: (peer.cpu() - cpu) as f64 / 1000.0 / CALLS as f64,
        memory: peer.memory() as f64 / 1024.0,
        ..Round::default()
    }
}

async fn many_agents(kind: Kind, cores: &Cores, round: &mut Round) {
    let home = tempfile::tempdir().unwrap();
    cores.for_all();
    let peer = Peer::start(kind, home.path()).await;
    let mut clients = Vec::new();
    for _ in 0..AGENTS {
        let mut client = peer.client().await;
        for _ in 0..WARM_UP / AGENTS {
            client.call().await;
        }
        clients.push(client);
    }
    let (cpu, started) = (peer.cpu(), Instant::now());
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|client| tokio::spawn(many(client)))
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let calls = (AGENTS * CALLS_EACH) as f64;
    round.rate_16 = calls / started.elapsed().as_secs_f64();
    round.cpu_16 = (peer.cpu() - cpu) as f64 / 1000.0 / calls;
    round.memory = peer.memory() as f64 / 1024.0;
}

async fn many(mut client: Client) {
    for _ in 0..CALLS_EACH {
        client.call().await;
    }
}

fn median(rounds: &[Round]) -> Round {
    let of = |field: fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(field).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Round {
        p50: of(|r| r.p50),
        p99: of(|r| r.p99),
        rate: of(|r| r.rate),
        cpu: of(|r| r.cpu),
        rate_16: of(|r| r.rate_16),
        cpu_16: of(|r| r.cpu_16),
        memory: of(|r| r.memory),
    }
}

fn print(rounds: usize, medians: &[Round]) {
    println!(
        "one call of `echo`, medians of {rounds} rounds of {CALLS} calls; 16 agents: {CALLS_EACH} calls each\n"
    );
    println!(
        "{:<28}{:>9}{:>9}{:>11}{:>10}{:>14}{:>10}{:>10}",
        "", "p50 µs", "p99 µs", "calls/s", "cpu µs", "16: calls/s", "cpu µs", "RSS MB"
    );
    let measured = KINDS.iter().zip(medians).filter(|(_, r)| r.p50 > 0.0);
    for ((_, name), r) in measured {
        let or_dash = |value: f64| match value {
            0.0 => "-".to_owned(),
            value => format!("{value:.0}"),
        };
        println!(
            "{name:<28}{:>9.1}{:>9.1}{:>11.0}{:>10.1}{:>14}{:>10}{:>10.1}",
            r.p50,
            r.p99,
            r.rate,
            r.cpu,
            or_dash(r.rate_16),
            or_dash(r.cpu_16),
            r.memory
        );
    }
    let [
        relay,
        tonic,
        nexus,
        _,
        direct,
        bridge,
        lines,
        grpc,
        own_lines,
        door,
        copier,
        mcp,
    ] = medians
    else {
        return;
    };
    println!(
        "\nratios (bars: one call ≤ 1.0, 16 agents ≥ 0.50, lines ≤ 1.5, HTTP door ≤ 3, nexusctl mcp ≤ 1.6, HTTP ≤ 1.5)"
    );
    let ratio = |what: &str, one: f64, other: f64| {
        if one > 0.0 && other > 0.0 {
            println!("  {what:<60}{:.2}", one / other);
        }
    };
    // What was not measured is zero.
    let both = |one: f64, other: f64| {
        if one > 0.0 && other > 0.0 {
            one + other
        } else {
            0.0
        }
    };
    let floor = both(tonic.p50, relay.p50);
    ratio(
        "one call    nexusd / (bare tonic + bare relay)",
        nexus.p50,
        floor,
    );
    ratio(
        "16 agents   nexusd / bare tonic",
        nexus.rate_16,
        tonic.rate_16,
    );
    ratio("lines       nexusd / bare relay", own_lines.p50, relay.p50);
    ratio("HTTP door   nexusd / bare relay", door.p50, relay.p50);
    let what = "stdio       nexusctl mcp / (bare copier + bare relay)";
    ratio(what, mcp.p50, copier.p50);
    ratio(
        "HTTP        nexusd, lines / directly",
        lines.p50,
        direct.p50,
    );
    ratio(
        "HTTP        nexusd, lines / bare bridge",
        lines.p50,
        bridge.p50,
    );
    ratio("HTTP        nexusd, gRPC / directly", grpc.p50, direct.p50);
    let floor = both(tonic.p50, direct.p50);
    ratio(
        "HTTP        nexusd, gRPC / (bare tonic + directly)",
        grpc.p50,
        floor,
    );
    ratio(
        "HTTP, 16    nexusd, gRPC / directly",
        grpc.rate_16,
        direct.rate_16,
    );
}
