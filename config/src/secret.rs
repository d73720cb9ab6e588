//! Fetches what is only referred to: the content of a file, what a program says, what a keyring has. Never by a
//! shell, and never for longer than a moment. No error has anything of the secret in it.

#[cfg(windows)]
mod windows;

#[cfg(not(windows))]
use crate::keyring::Entry;
use crate::{belief, expand::Reference};
use std::{
    fmt,
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// No secret is longer.
const MAX_SECRET: u64 = 64 * 1024;

/// How long a program may take to tell one: somebody may have to type a password.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// How a reference is looked into.
#[derive(Clone, Copy)]
pub enum How<'a> {
    /// For what it says: programs are started by this.
    Fetch(&'a dyn Starter),
    /// Only whether it could: nothing is run.
    Look,
}

/// Starts programs. A process that reaps whatever ends has to know of those that somebody waits for.
pub trait Starter {
    /// Starts one.
    fn start(&self, command: &mut Command) -> io::Result<Child>;
    /// Somebody has waited for it.
    fn has_ended(&self, child: &Child);
}

/// Starts programs, and has nothing to remember.
#[derive(Debug, Clone, Copy)]
pub struct Plainly;

impl Starter for Plainly {
    fn start(&self, command: &mut Command) -> io::Result<Child> {
        command.spawn()
    }

    fn has_ended(&self, _child: &Child) {}
}

/// What a reference refers to. Paths are relative to `folder`, and `~` is `home`.
pub fn fetch(
    reference: &Reference,
    how: How<'_>,
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
            let How::Fetch(starter) = how else {
                return Ok(String::new());
            };
            let program = place_program(program, folder, home);
            let said = run(starter, &program, args, folder, PATIENCE);
            said.map(|text| trim(&text)).map_err(|why| why.to_string())
        }
        Reference::Keyring(entry) => match how {
            How::Look => Ok(String::new()),
            #[cfg(not(windows))]
            How::Fetch(starter) => of_keyring(entry, starter),
            #[cfg(windows)]
            How::Fetch(_) => windows::of_keyring(entry),
        },
    }
}

/// Why a program has told nothing.
enum Silence {
    NotThere,
    Failed(ExitStatus),
    Other(String),
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotThere => f.write_str("the program is not there"),
            Self::Failed(status) => write!(f, "it failed ({status})"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

/// What the keyring has for an entry.
#[cfg(not(windows))]
fn of_keyring(entry: &Entry, starter: &dyn Starter) -> Result<String, String> {
    let argv = entry.lookup().unwrap_or_default();
    let Some((program, args)) = argv.split_first() else {
        return Err("this system has none".to_owned());
    };
    match run(starter, Path::new(program), args, Path::new("/"), PATIENCE) {
        Ok(text) => Ok(trim(&text)),
        Err(Silence::NotThere) if program == "secret-tool" => Err(
            "the program secret-tool is not there (it comes with libsecret-tools, or libsecret)"
                .to_owned(),
        ),
        Err(Silence::Failed(_)) => Err("it is not there, or the keyring is locked".to_owned()),
        Err(why) => Err(why.to_string()),
    }
}

/// Reads a file of ours: nobody else may be able to write it.
pub fn read_text(path: &Path) -> Result<String, String> {
    let say = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "you may not read it".to_owned(),
        _ => error.to_string(),
    };
    let (file, meta) = belief::open(path).map_err(say)?;
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
    starter: &dyn Starter,
    program: &Path,
    args: &[String],
    folder: &Path,
    patience: Duration,
) -> Result<String, Silence> {
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
    let mut child = starter
        .start(&mut command)
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Silence::NotThere,
            _ => Silence::Other(error.to_string()),
        })?;
    let other = |why: &str| Err(Silence::Other(why.to_owned()));
    let stdout = child.stdout.take();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let stdout = stdout.ok_or(io::ErrorKind::BrokenPipe.into());
        let read = stdout.and_then(|out| out.take(MAX_SECRET + 1).read_to_end(&mut bytes));
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
    starter.has_ended(&child);
    let bytes = match heard {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return other(&error.to_string()),
        Err(_) => {
            return other(&format!(
                "it took longer than {} seconds",
                patience.as_secs()
            ));
        }
    };
    if bytes.len() as u64 > MAX_SECRET {
        return other("it says too much");
    }
    match status {
        Some(status) if status.success() => {}
        Some(status) => return Err(Silence::Failed(status)),
        None => return other("it did not end"),
    }
    String::from_utf8(bytes).or_else(|_| other("what it says is not text"))
}

/// Waits that long, and then ends it and all that it has started.
fn wait(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
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
    use std::fs;

    fn of(reference: Reference) -> Result<String, String> {
        fetch(&reference, How::Fetch(&Plainly), Path::new("/"), None)
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
            &Plainly,
            Path::new("sh"),
            &args,
            Path::new("/"),
            Duration::from_millis(100),
        );
        assert!(error.unwrap_err().to_string().contains("longer than"));
    }

    #[test]
    fn a_file_is_read_without_the_end_of_its_last_line() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("s"), "a b\r\n").unwrap();
        let reference = Reference::File("~/s".into());
        let secret = fetch(
            &reference,
            How::Fetch(&Plainly),
            Path::new("/"),
            Some(dir.path()),
        );
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
