//! With real processes: `cmd` is everywhere, and a batch file is the wrapper that servers come in.

use super::{Group, describe_exit, endings, is_executable, spawn};
use crate::process::{Process, SpawnError, SpawnSpec, environment};
use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fs,
    path::Path,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, ChildStdout},
    time::timeout,
};

const SOON: Duration = Duration::from_secs(30);

fn spec(command: impl AsRef<OsStr>, args: &[&str]) -> SpawnSpec {
    SpawnSpec {
        command: command.as_ref().to_str().unwrap().to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: environment(env::vars_os(), &[], &BTreeMap::new()),
        cwd: None,
    }
}

/// A batch file that runs another, in a process of its own, which says so and waits for input.
async fn start_wrapper(dir: &Path) -> (Child, Group, BufReader<ChildStdout>) {
    fs::write(dir.join("inner.cmd"), "@echo inside\r\n@pause >nul\r\n").unwrap();
    let outer = dir.join("outer.cmd");
    fs::write(&outer, "@cmd /d /c \"%~dp0inner.cmd\"\r\n").unwrap();
    let (mut child, group) = spawn(&spec(&outer, &[]), &outer).unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    let read = timeout(SOON, stdout.read_line(&mut line)).await;
    read.expect("the inner one speaks").unwrap();
    assert_eq!(line.trim_end(), "inside");
    (child, group, stdout)
}

/// The pipe closes when the last of those that hold it has ended.
async fn assert_all_end(mut stdout: BufReader<ChildStdout>) {
    let mut rest = Vec::new();
    let end = timeout(SOON, stdout.read_to_end(&mut rest)).await;
    end.expect("nobody holds the pipe").unwrap();
}

async fn exit_of(mut child: Child) -> String {
    // The input stays open meanwhile: it is not what ends the child.
    let stdin = child.stdin.take();
    let status = timeout(SOON, child.wait()).await.expect("it ends");
    drop(stdin);
    describe_exit(status.unwrap())
}

#[tokio::test]
async fn a_kill_ends_what_a_wrapper_started() {
    let dir = tempfile::tempdir().unwrap();
    let (child, group, stdout) = start_wrapper(dir.path()).await;
    group.kill();
    let exit = exit_of(child).await;
    assert_eq!(exit, "exit code 0x40010004 (ended from outside)");
    assert_all_end(stdout).await;
}

#[tokio::test]
async fn a_closed_job_ends_what_a_wrapper_started() {
    let dir = tempfile::tempdir().unwrap();
    let (child, group, stdout) = start_wrapper(dir.path()).await;
    // As when the daemon dies.
    drop(group);
    exit_of(child).await;
    assert_all_end(stdout).await;
}

#[tokio::test]
async fn a_batch_file_gets_its_arguments_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let batch = dir.path().join("say it.cmd");
    fs::write(&batch, "@echo %1 %2\r\n@exit /b 7\r\n").unwrap();
    let (mut process, mut pipes) =
        Process::spawn(&spec(&batch, &["two words", "a&echo b"])).unwrap();
    let status = timeout(SOON, process.wait()).await.expect("it ends");
    assert_eq!(describe_exit(status.unwrap()), "exit code 7");
    let mut said = String::new();
    pipes.stdout.read_to_string(&mut said).await.unwrap();
    assert_eq!(said.trim_end(), r#""two words" "a&echo b""#);
}

#[tokio::test]
async fn an_argument_that_a_batch_file_cannot_be_given_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let batch = dir.path().join("x.cmd");
    fs::write(&batch, "@echo on\r\n").unwrap();
    let error = Process::spawn(&spec(&batch, &["fine", "a\nb"])).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("argument 2 has a line break"), "{text}");
}

#[tokio::test]
async fn a_file_that_is_no_program_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("server.py");
    fs::write(&script, "print()\n").unwrap();
    let error = Process::spawn(&spec(&script, &[])).unwrap_err();
    assert!(matches!(error, SpawnError::NotAProgram(_)), "{error}");
    // One that only claims to be.
    let fake = dir.path().join("fake.exe");
    fs::write(&fake, "not at all").unwrap();
    let error = Process::spawn(&spec(&fake, &[])).unwrap_err();
    assert!(matches!(error, SpawnError::NotAProgram(_)), "{error}");
}

#[test]
fn npx_and_python3_are_found_as_they_are_installed() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["npx", "npx.cmd", "python.exe", "tool.mine"] {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    let found = |command: &str, pathext: Option<&str>| {
        let mut spec = spec(command, &[]);
        // As Windows writes it.
        spec.env = BTreeMap::from([("Path".into(), dir.path().into())]);
        if let Some(pathext) = pathext {
            spec.env.insert("PathExt".into(), pathext.into());
        }
        let program = spec.find_program()?;
        Ok::<_, SpawnError>(program.file_name().unwrap().to_owned())
    };
    assert_eq!(found("npx", None).unwrap(), "npx.cmd");
    assert_eq!(found("NPX.CMD", None).unwrap(), "NPX.CMD");
    assert_eq!(found("python3", None).unwrap(), "python.exe");
    assert!(found("python4", None).unwrap_err().is_not_found());
    // The server's own list counts, and what it adds is still not a program.
    assert!(
        found("npx", Some(".EXE"))
            .unwrap_err()
            .to_string()
            .contains("npx is not a program")
    );
    assert!(found("tool", None).unwrap_err().is_not_found());
    let error = found("tool", Some(".EXE;.MINE")).unwrap_err();
    assert!(matches!(error, SpawnError::NotAProgram(_)), "{error}");
}

#[test]
fn endings_are_those_that_are_listed_or_the_usual() {
    assert_eq!(endings(Some(OsStr::new(".EXE; .Cmd;;x"))), [".exe", ".cmd"]);
    assert_eq!(endings(None), super::STARTABLE);
    assert_eq!(endings(Some(OsStr::new(""))), super::STARTABLE);
}

#[test]
fn a_program_is_known_by_its_ending_or_its_first_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("program");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    assert!(!is_executable(&file));
    fs::write(&file, "MZ and more").unwrap();
    assert!(is_executable(&file));
    assert!(is_executable(Path::new(r"C:\x\Y.CMD")));
}

#[test]
fn a_variable_is_set_whatever_its_case() {
    let ours = [("Path", "ours"), ("SystemRoot", "r")].map(|(k, v)| (k.into(), v.into()));
    let set = BTreeMap::from([("PATH".to_owned(), "theirs".to_owned())]);
    let env = environment(ours, &[], &set);
    let expected: [(OsString, OsString); 2] =
        [("PATH", "theirs"), ("SystemRoot", "r")].map(|(k, v)| (k.into(), v.into()));
    assert_eq!(env, BTreeMap::from(expected));
}
