//! Resources, prompts, completions and agents.

use crate::support::{Fake, Terminal};
use std::fs;

#[test]
fn resources_and_templates_are_tables_or_json() {
    let fake = Fake::start();
    let run = fake.run(&["resources"]);
    assert_eq!(run.stderr, "warning: broken: it keeps ending\n");
    assert_eq!(
        run.ok(),
        "SERVER  URI           NAME   TYPE           SIZE  DESCRIPTION\n\
         Demo    demo://notes  notes  text/plain  2.0 KiB  What I think\n\
         Demo    demo://logo   logo   -                 -\n"
    );
    let of_one = fake.run(&["resources", "--server", "demo"]);
    assert_eq!(of_one.stderr, "");
    assert_eq!(fake.run(&["resources", "demo"]).ok(), of_one.ok());
    let nothing = fake.run(&["resources", "empty"]);
    assert_eq!(
        (nothing.stderr.as_str(), nothing.code),
        ("no resources\n", 0)
    );
    let list = fake.run(&["--json", "resources"]).json();
    assert_eq!(list["resources"][0]["definition"]["size"], 2048);
    assert_eq!(list["missing"][0]["reason"], "CRASH_LOOP");

    let table = fake.run(&["templates"]).ok();
    let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["Demo", "demo://days/{day}", "day", "-", "A", "day"]);
    let list = fake.run(&["templates", "--json"]).json();
    assert_eq!(list["templates"][0]["uri_template"], "demo://days/{day}");
}

#[test]
fn a_pipe_gets_what_a_resource_holds_to_the_last_byte() {
    let fake = Fake::start();
    assert_eq!(fake.run(&["read", "demo://notes"]).ok(), "a \x1b[31mb");
    assert_eq!(
        fake.run(&["read", "demo", "demo://notes"]).ok(),
        "a \x1b[31mb"
    );
    assert_eq!(fake.run(&["read", "demo://folder"]).ok(), "one\ntwo");
    let raw = fake.ctl(&["read", "demo://logo"]).output().unwrap();
    assert_eq!(raw.stdout, [0, 1, 255]);
    let raw = fake.run(&["read", "demo://notes", "--json"]).ok();
    assert!(raw.ends_with(", \"n\":1e400}\n"), "{raw}");
    let error = fake.run(&["read", "demo://absent"]).error(1);
    assert_eq!(error, "error: there is no such resource\n");
}

#[test]
fn a_file_gets_it_too() {
    let fake = Fake::start();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("logo.png");
    let run = fake.run(&["read", "demo", "demo://logo", "-o", path.to_str().unwrap()]);
    assert!(run.stderr.ends_with("logo.png: 3 B\n"), "{run:?}");
    assert_eq!(run.ok(), "");
    assert_eq!(fs::read(&path).unwrap(), [0, 1, 255]);
    let error = fake.run(&["read", "demo://logo", "-o", "/nonexistent/x"]);
    assert!(
        error
            .error(1)
            .starts_with("error: cannot write /nonexistent/x\ncaused by: ")
    );
}

#[test]
fn a_terminal_gets_text_that_it_does_not_act_on() {
    let fake = Fake::start();
    let show = |args: &[&str]| Terminal::run(&mut fake.ctl(args)).ends();
    assert_eq!(
        show(&["--color", "never", "read", "demo://notes"]),
        (0, "a b\n".into())
    );
    let several = show(&["--color", "never", "read", "demo://folder"]);
    assert_eq!(several, (0, "demo://1\none\ndemo://2\ntwo\n".into()));
    let (code, shown) = show(&["--color", "never", "read", "demo://logo"]);
    assert_eq!(
        (code, shown.as_str()),
        (
            2,
            "error: demo://logo is nothing for a terminal: image/png, 3 B\n\n\
             hint: write it to a file with --output FILE, or pipe it somewhere\n"
        )
    );
}

#[test]
fn changes_are_told_until_there_were_enough() {
    let fake = Fake::start();
    let run = fake.run(&["subscribe", "demo://notes", "--count", "2"]);
    assert_eq!(run.stderr, "subscribed to demo://notes on Demo\n");
    let lines = run.ok();
    let lines: Vec<_> = lines
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .collect();
    assert_eq!(lines[0].1, "demo://notes changed");
    assert_eq!(lines[1].1, "demo://notes may have changed");
    assert!(lines[0].0.ends_with('Z') && lines.len() == 2, "{lines:?}");

    let read = fake.run(&["-q", "subscribe", "demo", "demo://notes", "-c1", "--read"]);
    assert_eq!(read.stderr, "");
    assert!(read.ok().ends_with(" changed\na \x1b[31mb\n"));
    // Verbatim: numbers that no program of ours could read are in it.
    let json = fake.run(&["subscribe", "demo://notes", "-c1", "--read", "--json"]);
    let json = json.ok();
    assert!(
        json.contains(r#""uri":"demo://notes","maybe":false,"result":{"#),
        "{json}"
    );
    assert!(json.ends_with(", \"n\":1e400}}\n"), "{json}");
}

#[test]
fn a_subscription_whose_resource_cannot_be_read_fails() {
    let fake = Fake::start();
    let run = fake.run(&["-q", "subscribe", "demo://absent", "--read"]);
    assert_eq!(run.error(1), "error: there is no such resource\n");
}

#[test]
fn prompts_are_listed_shown_and_filled_in() {
    let fake = Fake::start();
    let table = fake.run(&["prompts"]).ok();
    assert_eq!(
        table,
        "NAME         ARGUMENTS     DESCRIPTION\n\
         Demo.review  code [style]  Reviews code\n"
    );
    assert_eq!(fake.run(&["prompts", "demo"]).ok(), table);
    for name in ["demo.review", "demo__review", "review", "mcp:demo.review"] {
        assert_eq!(
            fake.run(&["prompts", name]).ok(),
            "Demo.review\n  Reviews code\n  \
             ARGUMENT  REQUIRED  DESCRIPTION\n  \
             code      yes       What to review\n  \
             style\n"
        );
    }
    let error = fake.run(&["prompts", "nope"]).error(1);
    assert!(
        error.starts_with("error: there is no prompt `nope`\n\nhint: "),
        "{error}"
    );

    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("code");
    fs::write(&path, "1 + 1").unwrap();
    let code = format!("code=@{}", path.display());
    let args = ["prompt", "demo.review", "--arg", &code, "-a", "style=5"];
    assert_eq!(
        fake.run(&args).ok(),
        "user:\n{\"code\":\"1 + 1\",\"style\":\"5\"}\n\nassistant:\n[image: image/png, 3 B]\n"
    );
    let json = fake.run(&["prompt", "demo.review", "--json"]).json();
    assert_eq!(json["messages"][0]["role"], "user");
}

#[test]
fn suggestions_are_one_in_a_line() {
    let fake = Fake::start();
    let run = fake.run(&["complete", "demo.review", "style", "st", "--arg", "code=x"]);
    assert_eq!(run.stderr, "4 of 9\n");
    assert_eq!(run.ok(), "demo.review\nstyle\nst\n{\"code\": \"x\"}\n");
    let run = fake.run(&[
        "complete",
        "-s",
        "demo",
        "--template",
        "demo://{day}",
        "day",
    ]);
    assert_eq!(run.ok(), "demo|demo://{day}\nday\n\n{}\n");
    let json = fake
        .run(&["complete", "demo.review", "style", "--json"])
        .json();
    assert_eq!(json["completion"]["total"], 9);
}

#[test]
fn agents_are_listed_with_what_they_can_be_asked() {
    let fake = Fake::start();
    assert_eq!(
        fake.run(&["agents"]).ok(),
        "ID  NAME             LEVEL    PID  PROJECT     SINCE  IN-FLIGHT  CALLS  CAN                                      HOLDS\n \
         3  claude-code 2.1  trusted   42  /home/me/x     0s          2     17  sampling with tools, elicitation, roots  diary\n \
         4  - (you)          -          -  -               -          0      0  -                                        -\n"
    );
    let agents = fake.run(&["agents", "--json"]).json();
    assert_eq!(agents[0]["capabilities"]["sampling_tools"], true);
    assert_eq!(
        (&agents[1]["you"], &agents[1]["name"]),
        (&true.into(), &().into())
    );
}

#[test]
fn a_server_is_told_how_much_to_log() {
    let fake = Fake::start();
    let told = fake.run(&["log-level", "demo", "debug"]).ok();
    assert_eq!(told, "demo: logs debug and above\n");
    let told = fake.run(&["log-level", "demo", "debug", "--json"]).json();
    assert_eq!(told["level"], "debug");
    let error = fake.run(&["log-level", "mute", "debug"]).error(1);
    assert_eq!(error, "error: mute does not log for its client\n");
}

#[test]
fn what_a_server_logs_goes_to_stderr() {
    let fake = Fake::start();
    let run = fake.run(&["call", "demo.x", "--log-level", "warning"]);
    assert_eq!(run.stderr, "[warning] worker: {\"n\":1e400}\n");
    assert_eq!(run.ok(), "demo.x is done\n");
    let run = fake.run(&["--color", "always", "call", "demo.x", "-l", "error"]);
    assert!(
        run.stderr.starts_with("\x1b[31m[error]\x1b[0m worker"),
        "{run:?}"
    );
}

#[test]
fn a_server_is_shown_with_what_it_offers() {
    let fake = Fake::start();
    let server = fake.run(&["servers", "demo"]).ok();
    assert!(
        server.contains("resources    3, and 2 templates\n"),
        "{server}"
    );
    assert!(server.contains("prompts      4\n"), "{server}");
    let server = fake.run(&["servers", "demo", "--json"]).json();
    assert_eq!(server["resource_templates"], 2);
}
