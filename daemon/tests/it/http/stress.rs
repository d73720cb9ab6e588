//! The same fault five hundred times, under load.

use super::{
    echo, look,
    mock::{Answer, Era, Mock, Part},
    nonces, ready, trusted,
};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

const TIMES: usize = 500;
const WORKERS: usize = 8;

/// Each session is good for a few calls. Whoever comes too late has done nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_five_hundred_times_costs_nobody_anything() {
    let uses: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let ends = Arc::new(AtomicUsize::new(0));
    let mock = Mock::start(Era::Legacy, {
        let (uses, ends) = (Arc::clone(&uses), Arc::clone(&ends));
        move |seen| {
            if !seen.is("tools/call") && !seen.is("resources/read") {
                return None;
            }
            let session = seen.header("mcp-session-id").unwrap().to_owned();
            let mut uses = uses.lock().unwrap();
            let used = uses.entry(session).or_default();
            *used += 1;
            if *used == 5 {
                ends.fetch_add(1, Ordering::Relaxed);
            }
            (*used >= 5).then(|| Answer::status(404))
        }
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    let workers = (0..WORKERS).map(|worker| {
        let (nexus, ends) = (nexus.clone(), Arc::clone(&ends));
        tokio::spawn(async move {
            let mut good = 0;
            while ends.load(Ordering::Relaxed) < TIMES {
                let said = format!("{worker}-{}", good);
                if good % 4 == 3 {
                    let read = nexus.resources().read_from("t", "x:///a").await;
                    assert_eq!(read.unwrap().text(), "a");
                    good += 1;
                    continue;
                }
                assert_eq!(echo(&nexus, &said).await.unwrap(), said);
                good += 1;
            }
            good
        })
    });
    let mut good = 0;
    for worker in workers.collect::<Vec<_>>() {
        good += worker.await.unwrap();
    }
    let ends = ends.load(Ordering::Relaxed);
    let begun = mock.seen("initialize").len();
    eprintln!("sessions ended {ends}, begun {begun}, calls {good}");
    assert!(good > TIMES && begun <= ends + 2, "{begun}");
    let server = nexus.servers().get("t").await.unwrap();
    assert_eq!(server.restarts, 0, "{:?}", server.last_failure);
}

/// Each answer breaks off once, and is had whole all the same, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_cut_five_hundred_times_loses_nothing() {
    let waiting: Arc<Mutex<HashMap<String, Value>>> = Arc::default();
    let mock = Mock::start(Era::Legacy, {
        let waiting = Arc::clone(&waiting);
        move |seen| {
            if seen.is("tools/call") {
                let id = seen.body["id"].to_string();
                waiting.lock().unwrap().insert(id.clone(), seen.echo());
                let cut = Answer::events()
                    .part(Part::Text("retry: 1\n".to_owned()))
                    .event(&format!("{id}.0"), &Value::Null);
                // By accident, or because the server has no patience.
                return Some(if seen.nth % 2 == 0 {
                    cut.part(Part::Cut)
                } else {
                    cut
                });
            }
            let last = seen.header("last-event-id")?;
            let (id, _) = last.split_once('.').unwrap();
            let answer = waiting.lock().unwrap().get(id).unwrap().clone();
            let answer = Answer::events().event(&format!("{id}.1"), &answer);
            Some(answer)
        }
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, json!({})).await;
    let workers = (0..WORKERS).map(|worker| {
        let nexus = nexus.clone();
        tokio::spawn(async move {
            for n in 0..TIMES.div_ceil(WORKERS) {
                let said = format!("{worker}-{n}");
                assert_eq!(echo(&nexus, &said).await.unwrap(), said);
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    let calls = nonces(&mock.seen("tools/call"));
    let once: HashSet<_> = calls.iter().collect();
    assert!(calls.len() >= TIMES && once.len() == calls.len());
    let server = nexus.servers().get("t").await.unwrap();
    assert!(server.warnings.is_empty(), "{:?}", server.warnings);
    assert_eq!(server.restarts, 0);
}

/// In the modern era there is nothing to take up: what may be asked again is, the rest is told, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_modern_stream_that_is_cut_five_hundred_times_ends_as_its_era_has_it() {
    let seen_before: Arc<Mutex<HashSet<String>>> = Arc::default();
    let mock = Mock::start(Era::Modern, {
        let seen_before = Arc::clone(&seen_before);
        move |seen| {
            let said = seen.body["params"]["arguments"]["message"].to_string();
            let first = seen.is("tools/call") && seen_before.lock().unwrap().insert(said);
            first.then(|| {
                Answer::events()
                    .event("", &json!({"jsonrpc": "2.0", "method": "x"}))
                    .part(Part::Cut)
            })
        }
    })
    .await;
    let (_daemon, nexus) = ready(&mock.url, trusted()).await;
    let workers = (0..WORKERS).map(|worker| {
        let nexus = nexus.clone();
        tokio::spawn(async move {
            for n in 0..TIMES.div_ceil(WORKERS) {
                let said = format!("{worker}-{n}");
                if n % 2 == 0 {
                    assert_eq!(look(&nexus, &said).await.unwrap(), said);
                } else {
                    let error = echo(&nexus, &said).await.unwrap_err();
                    assert!(error.maybe_executed(), "{error}");
                }
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    let ids: Vec<_> = mock
        .seen("tools/call")
        .iter()
        .map(|seen| seen.body["id"].to_string())
        .collect();
    let once: HashSet<_> = ids.iter().collect();
    assert_eq!(once.len(), ids.len(), "an id was used twice");
}
