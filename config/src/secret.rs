//! Fetches what is only referred to: the content of a file, what a program says. Never by a shell, and never
//! for longer than a moment. No error has anything of the secret in it.

use crate::{belief, expand::Reference};
use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// No secret is longer.
const MAX_SECRET: u64 = 64 * 1024;

/// How long a program may take to tell one: somebody may have to type a password.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// How a reference is looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// For what it says.
    Fetch,
    /// Only whether it could: nothing is run.
    Look,
}

/// What a reference refers to. Paths are relative to `folder`, and `~` is `home`.
pub fn fetch(
    reference: &Reference,
    how: How,
    folder: &Path,
    home: Option<&Path>,
) -> Result<String, String> {
    match reference {
        Reference::File(path) => {
            let text = read_text(&place(path, folder, home))?;
            Ok(trim(&text))
        }
        Reference::Command(argv) => {
            let Some((program, args)) = argv.split_first() else {
                return Err("it names no program".to_owned());
            };
            if how == How::Look {
                return Ok(String::new());
            }
            run(
                &place_program(program, folder, home),
                args,
                folder,
                PATIENCE,
            )
            .map(|text| trim(&text))
        }
    }
}

/// Reads a file of ours: nobody else may be able to write it.
pub fn read_text(path: &Path) -> Result<String, String> {
    let say = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "you may not read it".to_owned(),
        _ => error.to_string(),
    };
    let meta = fs::metadata(path).map_err(say)?;
    if !meta.is_file() {
        return Err("it is not a file".to_owned());
    }
    let file = fs::File::open(path).map_err(say)?;
    let meta = file.metadata().map_err(say)?;
    belief::check(path, &meta)
        .map_err(|doubt| format!("{} {}", doubt.path.display(), doubt.problem))?;
    let mut bytes = Vec::new();
    file.take(MAX_SECRET + 1)
        .read_to_end(&mut bytes)
        .map_err(say)?;
    if bytes.len() as u64 > MAX_SECRET {
        return Err("it is too large".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())
}

/// The file that is meant.
pub fn place(path: &str, folder: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => folder.join(path),
    }
}

fn place_program(program: &str, folder: &Path, home: Option<&Path>) -> PathBuf {
    if program.contains(['/', '\\']) {
        place(program, folder, home)
    } else {
        PathBuf::from(program)
    }
}

fn run(
    program: &Path,
    args: &[String],
    folder: &Path,
    patience: Duration,
) -> Result<String, String> {
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if folder.is_dir() {
        command.current_dir(folder);
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "the program is not there".to_owned(),
        _ => error.to_string(),
    })?;
    let Some(stdout) = child.stdout.take() else {
        return Err("it cannot be heard".to_owned());
    };
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(MAX_SECRET + 1).read_to_end(&mut bytes);
        // Whoever waited has gone, if this fails.
        let _ = tell.send(read.map(|_| bytes));
    });
    let heard = told.recv_timeout(patience);
    let status = wait(
        &mut child,
        if heard.is_ok() {
            Duration::from_secs(1)
        } else {
            Duration::ZERO
        },
    );
    let bytes = match heard {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => {
            return Err(format!(
                "it took longer than {} seconds",
                patience.as_secs()
            ));
        }
    };
    match status {
        Some(status) if status.success() => {}
        Some(status) => return Err(format!("it failed ({status})")),
        None => return Err("it did not end".to_owned()),
    }
    if bytes.len() as u64 > MAX_SECRET {
        return Err("it says too much".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "what it says is not text".to_owned())
}

/// Waits that long, and then ends it and all that it has started.
fn wait(child: &mut Child, patience: Duration) -> Option<std::process::ExitStatus> {
    const STEP: Duration = Duration::from_millis(10);
    let mut left = patience;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if left.is_zero() {
            break;
        }
        thread::sleep(STEP);
        left = left.saturating_sub(STEP);
    }
    #[cfg(unix)]
    if let Some(pid) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Files end in a line break, secrets do not.
fn trim(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text).to_owned()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn of(reference: Reference) -> Result<String, String> {
        fetch(&reference, How::Fetch, Path::new("/"), None)
    }

    fn command(words: &[&str]) -> Reference {
        Reference::Command(words.iter().map(|&word| word.to_owned()).collect())
    }

    #[test]
    fn a_program_is_asked_without_a_shell() {
        assert_eq!(
            of(command(&["echo", "$HOME;", "x  y"])),
            Ok("$HOME; x  y".into())
        );
        assert_eq!(of(command(&["printf", "a\\nb"])), Ok("a\nb".into()));
        assert_eq!(
            of(command(&["no-such-program"])),
            Err("the program is not there".into())
        );
        assert!(of(command(&["false"])).unwrap_err().contains("failed"));
        let looked = fetch(&command(&["false"]), How::Look, Path::new("/"), None);
        assert!(looked.is_ok());
    }

    #[test]
    fn one_that_takes_too_long_is_ended_with_its_children() {
        let args = ["-c".to_owned(), "sleep 1000 & sleep 1000".to_owned()];
        let error = run(
            Path::new("sh"),
            &args,
            Path::new("/"),
            Duration::from_millis(100),
        );
        assert!(error.unwrap_err().contains("longer than"));
    }

    #[test]
    fn a_file_is_read_without_the_end_of_its_last_line() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("s"), "a b\r\n").unwrap();
        let reference = Reference::File("~/s".into());
        let secret = fetch(&reference, How::Fetch, Path::new("/"), Some(dir.path()));
        assert_eq!(secret, Ok("a b".into()));
        assert_eq!(
            of(Reference::File("/no/such".into())),
            Err("there is no such file".into())
        );
        let large = dir.path().join("large");
        fs::write(&large, vec![b'x'; 100_000]).unwrap();
        assert!(read_text(&large).is_err());
    }
}
