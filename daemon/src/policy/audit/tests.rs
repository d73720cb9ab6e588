use super::*;
use nexus_proto::reason::Reason;
use serde_json::Value;
use std::{fs, path::PathBuf};

struct Place {
    folder: tempfile::TempDir,
    agent: Agent,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            agent: Agent::default(),
        }
    }

    fn audit(&self, with_arguments: bool) -> Audit {
        let calls = self.folder.path().join("calls");
        let audit = Audit::start(&self.folder.path().join("audit"), &calls);
        audit.apply(&Written {
            audit_arguments: Some(with_arguments),
            ..Written::default()
        });
        audit
    }

    fn begin<'a>(&'a self, audit: &'a Audit, arguments: &Bytes) -> Entry<'a> {
        audit.begin(Request {
            agent: &self.agent,
            project: None,
            method: "tools/call",
            target: "add",
            arguments: Some(arguments.clone()),
        })
    }

    fn file(&self, n: u32) -> PathBuf {
        let file = self.folder.path().join("audit").join(FILE);
        writer::ROTATION.numbered(&file, n)
    }

    /// All lines there are, the oldest first.
    fn lines(&self) -> Vec<Value> {
        let files = (0..=writer::ROTATION.older).rev();
        let texts = files.filter_map(|n| fs::read_to_string(self.file(n)).ok());
        let texts: Vec<_> = texts.collect();
        let lines = texts.iter().flat_map(|text| text.lines());
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

#[test]
fn files_are_rotated_and_no_line_is_lost_to_that() {
    let place = Place::new();
    let audit = place.audit(true);
    let arguments = format!("{{\"text\":\"{}\"}}", "x ".repeat(16 * 1024));
    let arguments = Bytes::from(arguments);
    for _ in 0..600 {
        let mut entry = place.begin(&audit, &arguments);
        entry.sending();
        entry.end(Ok(&Bytes::from_static(b"{}")));
    }
    // A machine that is busy takes its time.
    for _ in 0..30 {
        audit.flush();
        if place.lines().len() == 600 {
            break;
        }
    }
    assert_eq!(place.lines().len(), 600);
    assert!(place.file(2).exists());
    for n in 0..3 {
        let meta = fs::metadata(place.file(n)).unwrap();
        assert!(meta.len() <= writer::ROTATION.max_file);
    }
}

#[test]
fn what_is_large_is_hashed_and_judged_all_the_same() {
    let place = Place::new();
    let audit = place.audit(false);
    let pad = " ".repeat(INLINE);
    let arguments = Bytes::from(format!("{{{pad}}}"));
    let result = Bytes::from(format!("{{{pad}\"isError\":true}}"));
    let mut entry = place.begin(&audit, &arguments);
    entry.sending();
    entry.end(Ok(&result));
    audit.flush();
    let line = &place.lines()[0];
    let hash: String = Sha256::digest(&arguments)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(line["arguments_sha256"], hash);
    assert_eq!(line["outcome"], "tool-error");
}

#[test]
fn a_call_that_was_never_over_is_lost_and_one_that_was_is_not_told_twice() {
    let place = Place::new();
    let none = Bytes::new();
    let audit = place.audit(false);
    let mut open = place.begin(&audit, &none);
    open.sending();
    // The daemon is gone, and nobody drops anything.
    std::mem::forget(open);
    // Another was over, and its line still waits to be written.
    let mut over = place.begin(&audit, &none);
    over.sending();
    let open = over.0.as_mut().unwrap();
    let head = open.head.take().unwrap();
    let mut end = Vec::new();
    let ok = End {
        decision: "allowed",
        outcome: "ok",
        duration: Duration::ZERO,
        result: Some(2),
    };
    line::add_end(&mut end, ok);
    open.note_end(&head, &end);
    std::mem::forget(over);
    place
        .begin(&audit, &none)
        .end(Err(&Failure::new(Reason::Denied, "no")));
    audit.flush();
    // A slot that was not freed though its line is there, and a line that was cut off.
    let calls = place.folder.path().join("calls");
    let written = fs::read_to_string(place.file(0)).unwrap();
    let mut slots = fs::read(&calls).unwrap();
    slots.resize(5 * recover::SLOT, 0);
    slots.extend_from_slice(written.as_bytes());
    fs::write(&calls, slots).unwrap();
    fs::write(place.file(0), written.clone() + "{\"id\":\"x").unwrap();

    for _ in 0..2 {
        let audit = place.audit(false);
        audit.flush();
        let lines = place.lines();
        let told = lines.iter().map(|line| line["outcome"].as_str().unwrap());
        assert_eq!(told.collect::<Vec<_>>(), ["DENIED", "lost", "ok"]);
        assert_eq!(lines[0]["decision"], "denied");
    }
}

#[test]
fn a_folder_that_cannot_be_written_holds_nobody_up() {
    let place = Place::new();
    fs::write(place.folder.path().join("audit"), "").unwrap();
    let audit = place.audit(false);
    for _ in 0..2 * QUEUE {
        drop(place.begin(&audit, &Bytes::new()));
    }
    audit.flush();
    fs::remove_file(place.folder.path().join("audit")).unwrap();
    drop(place.begin(&audit, &Bytes::new()));
    audit.flush();
    let lines = place.lines();
    let lost: u64 = lines
        .iter()
        .filter_map(|line| line["lines_lost"].as_u64())
        .sum();
    let told = lines.iter().filter(|line| line["outcome"] == "cancelled");
    assert_eq!(lost + told.count() as u64, 2 * QUEUE as u64 + 1);
}

#[test]
fn nothing_is_written_where_nobody_wants_it() {
    let place = Place::new();
    let audit = place.audit(false);
    audit.apply(&Written {
        audit: Some(false),
        ..Written::default()
    });
    drop(place.begin(&audit, &Bytes::new()));
    audit.flush();
    assert!(place.lines().is_empty());
}

#[tokio::test]
async fn a_call_that_waits_for_somebody_is_not_forgotten_either() {
    let place = Place::new();
    let audit = place.audit(false);
    let none = Bytes::new();
    let mut waiting = place.begin(&audit, &none);
    assert!(
        futures_util::poll!(std::pin::pin!(
            waiting.waits_for(std::pin::pin!(std::future::pending::<()>()))
        ))
        .is_pending()
    );
    std::mem::forget(waiting);
    // What need not wait is not noted for that.
    let mut ready = place.begin(&audit, &none);
    ready
        .waits_for(std::pin::pin!(std::future::ready(())))
        .await;
    std::mem::forget(ready);

    let audit = place.audit(false);
    audit.flush();
    let lines = place.lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(
        (&lines[0]["decision"], &lines[0]["outcome"]),
        (&"none".into(), &"lost".into())
    );
}

#[test]
fn slots_whose_lines_are_written_are_used_again_and_emptied_when_there_is_time() {
    let place = Place::new();
    let audit = place.audit(false);
    for _ in 0..3 {
        for _ in 0..1000 {
            let mut entry = place.begin(&audit, &Bytes::new());
            entry.sending();
            entry.end(Ok(&Bytes::from_static(b"{}")));
        }
        audit.flush();
    }
    assert_eq!(place.lines().len(), 3000);
    let slots = fs::read(place.folder.path().join("calls")).unwrap();
    assert!(slots.len() <= 1000 * recover::SLOT);
    assert_eq!(recover::taken(&slots).count(), 0);
}
