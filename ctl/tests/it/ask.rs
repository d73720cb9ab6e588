//! Being asked at a terminal.

use crate::support::{Fake, Terminal};

fn at_terminal(fake: &Fake, args: &[&str]) -> Terminal {
    // One that waits for what is never typed ends all the same.
    let global = ["--color", "never", "--timeout", "60s"];
    Terminal::run(fake.ctl(&global).args(args))
}

#[test]
fn a_form_is_filled_in_field_by_field() {
    let fake = Fake::start();
    let mut terminal = at_terminal(&fake, &["call", "demo.form"]);
    terminal.shows("Demo asks:\r\n  Who are you?\r\n");
    terminal.shows("It wants to know: Your name, color, age (optional)\r\n");
    terminal.shows("[accept/decline/cancel] ");
    terminal.types("\n");
    terminal.shows("Type accept, decline or cancel.\r\n[accept/decline/cancel] ");
    terminal.types("accept\n");
    terminal.shows("\r\nYour name\r\ntext: ");
    terminal.types("Ann\n");
    terminal.shows("color\r\n  1) Red\r\n  2) Green\r\n1-2, or Enter for Green: ");
    terminal.types("1\n");
    terminal.shows("age (optional)\r\nwhole number, or Enter to skip: ");
    terminal.types("old\n");
    terminal.shows("That is not a whole number.");
    terminal.types("30\n");
    let (code, shown) = terminal.ends();
    let answer = r#"{"action":"accept","content":{"name":"Ann","color":"r","age":30}}"#;
    assert!(
        code == 0 && shown.ends_with(&format!("{answer}\n")),
        "{shown}"
    );
    assert!(!shown.contains('\x1b'), "{shown:?}");
}

#[test]
fn a_form_can_be_declined_and_cancelled() {
    let fake = Fake::start();
    for (typed, action) in [("no\n", "decline"), ("c\n", "cancel"), ("\x04", "cancel")] {
        let mut terminal = at_terminal(&fake, &["call", "demo.form"]);
        terminal.shows("[accept/decline/cancel] ");
        terminal.types(typed);
        let (code, shown) = terminal.ends();
        let answer = format!("{{\"action\":\"{action}\"}}\n");
        assert!(code == 0 && shown.ends_with(&answer), "{shown}");
    }
    // In the middle of it, too.
    let mut terminal = at_terminal(&fake, &["call", "demo.form"]);
    terminal.shows("[accept/decline/cancel] ");
    terminal.types("y\n");
    terminal.shows("text: ");
    terminal.types("Ann\n");
    terminal.shows("Enter for Green: ");
    terminal.types("\x04");
    assert!(terminal.ends().1.ends_with("{\"action\":\"cancel\"}\n"));
}

#[test]
fn a_page_is_shown_and_not_opened() {
    let fake = Fake::start();
    let mut terminal = at_terminal(&fake, &["call", "demo.page"]);
    terminal.shows("Demo asks you to go to a page:\r\n  Log in\r\n  https://x.example/login\r\n");
    terminal.shows("It is a page of x.example.\r\n");
    terminal.shows("It is not opened for you.\r\n[accept/decline/cancel] ");
    terminal.types("accept\n");
    assert!(terminal.ends().1.ends_with("{\"action\":\"accept\"}\n"));
}

#[test]
fn a_question_that_is_withdrawn_makes_room_for_the_next() {
    let fake = Fake::start();
    let mut terminal = at_terminal(&fake, &["call", "demo.fickle"]);
    terminal.shows("Who are you?");
    terminal.shows("[accept/decline/cancel] ");
    fake.change_its_mind();
    terminal.shows("(this need not be answered any more)");
    terminal.shows("go to a page");
    terminal.shows("[accept/decline/cancel] ");
    terminal.types("no\n");
    let (code, shown) = terminal.ends();
    let answer = "{\"action\":\"decline\"}\n";
    assert!(code == 0 && shown.ends_with(answer), "{shown}");
}

#[test]
fn an_agent_at_a_terminal_works_in_the_current_folder() {
    let fake = Fake::start();
    let home = tempfile::tempdir().unwrap();
    let mut command = fake.ctl(&["call", "demo.x"]);
    let (code, shown) = Terminal::run(command.current_dir(home.path())).ends();
    assert_eq!((code, shown.as_str()), (0, "demo.x is done\n"));
    let hello = fake.hello().unwrap();
    assert_eq!(hello.name, "nexusctl");
    let folder = home.path().canonicalize().unwrap();
    assert_eq!(hello.roots[0].uri, format!("file://{}", folder.display()));
    let can = hello.capabilities.unwrap();
    assert!(can.elicitation_form && can.elicitation_url && can.roots && !can.sampling);
}

#[test]
fn reading_a_resource_can_be_asked_about_as_well() {
    let fake = Fake::start();
    let mut terminal = at_terminal(&fake, &["read", "demo://asks"]);
    terminal.shows("[accept/decline/cancel] ");
    terminal.types("d\n");
    assert!(terminal.ends().1.ends_with("\nasked\n"));
}

#[test]
fn nobody_is_asked_who_does_not_sit_there_or_does_not_want_to_be() {
    let fake = Fake::start();
    let error = fake.run(&["call", "demo.form"]).error(1);
    assert!(error.contains("nobody answers"), "{error}");
    let (code, shown) = at_terminal(&fake, &["call", "demo.form", "--no-input"]).ends();
    assert!(code == 1 && shown.contains("nobody answers"), "{shown}");
    assert!(fake.hello().is_none());
}
