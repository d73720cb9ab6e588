//! For one user: Windows starts what the user's `Run` key names at every logon. That needs no
//! administrator, and Settings › Apps › Startup shows it. What is started there is the daemon's keeper,
//! which has no window and starts the daemon again when it has crashed: neither a `Run` key nor a
//! scheduled task would.

use super::{GLANCE, PATIENCE, StatusJson, folder, not_installed};
use crate::{
    commands::{Context, service::program::find_nexusd},
    exit::Error,
};
use std::{
    fs::{self, File, TryLockError},
    io,
    os::windows::{io::AsRawHandle as _, process::CommandExt as _},
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use windows_registry::CURRENT_USER;
use windows_sys::Win32::Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation};

const RUN: &str = r"Software\Microsoft\Windows\CurrentVersion\Run";

/// Where Windows notes what the user has switched off.
const APPROVED: &str = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run";

const VALUE: &str = "Nexus";

/// The keeper is nobody's: it has no console, and no Ctrl-C of ours is for it.
const DETACHED_PROCESS: u32 = 0x8;
const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;

pub(super) async fn install(
    context: &Context,
    nexusd: Option<PathBuf>,
    start_now: bool,
) -> Result<(), Error> {
    let nexusd = find_nexusd(nexusd)?.to_string_lossy().into_owned();
    if start_now {
        check_alone(context).await?;
    }
    let written = CURRENT_USER
        .create(RUN)
        .and_then(|key| key.set_string(VALUE, command_of(&nexusd)));
    written.map_err(|error| failed("cannot write the Run key", error))?;
    context
        .output
        .note(&format!("{nexusd} is started when you log on"));
    if start_now {
        if is_kept()? {
            // The one that runs may be an older program.
            end(context).await?;
        }
        keep(context, &nexusd).await?;
    }
    show(context).await
}

pub(super) async fn uninstall(context: &Context) -> Result<(), Error> {
    if is_kept()? {
        end(context).await?;
    }
    if installed().is_some() {
        let removed = CURRENT_USER
            .create(RUN)
            .and_then(|key| key.remove_value(VALUE));
        removed.map_err(|error| failed("cannot remove the Run key's value", error))?;
    }
    context
        .output
        .note("the service is gone; your configuration stays");
    Ok(())
}

pub(super) async fn start(context: &Context) -> Result<(), Error> {
    let command = installed().ok_or_else(not_installed)?;
    check_alone(context).await?;
    if !is_kept()? {
        let program = program_of(&command);
        keep(context, program).await?;
    }
    show(context).await
}

pub(super) async fn stop(context: &Context) -> Result<(), Error> {
    if is_kept()? {
        end(context).await?;
    }
    show(context).await
}

pub(super) async fn show(context: &Context) -> Result<(), Error> {
    let installed = installed().is_some();
    let pid = if is_kept()? {
        running(context).await
    } else {
        None
    };
    let status = match (installed, pid) {
        (_, Some(pid)) => format!("nexusd runs, pid {pid}"),
        (false, None) => "not installed; `nexusctl service install` does that".to_owned(),
        (true, None) if is_switched_off() => {
            "nexusd is installed and switched off in Settings, under Apps, Startup".to_owned()
        }
        (true, None) => "nexusd is installed and does not run".to_owned(),
    };
    let status = StatusJson {
        installed,
        active: pid.is_some(),
        pid,
        status,
    };
    status.show(context)
}

/// A daemon that somebody started by hand has the pipe.
async fn check_alone(context: &Context) -> Result<(), Error> {
    if is_kept()? {
        return Ok(());
    }
    match running(context).await {
        None => Ok(()),
        Some(pid) => Err(Error::Usage {
            message: format!("a daemon runs already that is no service, pid {pid}"),
            hint: Some("`nexusctl shutdown` stops it; then try again".to_owned()),
        }),
    }
}

/// The process of the daemon that answers.
async fn running(context: &Context) -> Option<u32> {
    let nexus = context.connect().await.ok()?;
    Some(nexus.daemon().status().await.ok()?.pid)
}

/// Lets nobody inherit our output, or whoever reads it would wait for the keeper to end.
#[expect(unsafe_code, reason = "handles have no safe interface for this")]
fn keep_output_to_ourselves() {
    for handle in [
        io::stdin().as_raw_handle(),
        io::stdout().as_raw_handle(),
        io::stderr().as_raw_handle(),
    ] {
        // Where it is not possible, somebody may have to wait.
        // SAFETY: the handle is ours, and open for the length of the call; if it is none, that is an error.
        unsafe { SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0) };
    }
}

/// Starts the keeper, and waits until its daemon answers.
async fn keep(context: &Context, nexusd: &str) -> Result<(), Error> {
    keep_output_to_ourselves();
    let mut keeper = Command::new(nexusd)
        .arg("keeper")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP)
        .spawn()
        .map_err(|source| Error::Io {
            attempt: format!("cannot start {nexusd}"),
            source,
        })?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if running(context).await.is_some() {
            return Ok(());
        }
        if let Ok(Some(_)) = keeper.try_wait() {
            break;
        }
        sleep(GLANCE).await;
    }
    Err(Error::Usage {
        message: "nexusd does not stay".to_owned(),
        hint: Some(format!("{} says why", log()?.display())),
    })
}

/// Ends the daemon, and with it the keeper, which ends by itself when its daemon was told to.
async fn end(context: &Context) -> Result<(), Error> {
    let asked = match context.connect().await {
        Ok(nexus) => nexus.daemon().shutdown(false).await.is_ok(),
        Err(_) => false,
    };
    if !asked {
        // It waits between two starts of a daemon that crashes.
        kill_keeper()?;
    }
    let began = Instant::now();
    while is_kept()? {
        if began.elapsed() > PATIENCE {
            return Err(Error::Timeout(PATIENCE));
        }
        sleep(GLANCE).await;
    }
    // The pipe goes a moment later than the lock.
    sleep(Duration::from_millis(100)).await;
    Ok(())
}

fn kill_keeper() -> Result<(), Error> {
    let path = folder("LOCALAPPDATA")?.join("nexus").join("keeper.pid");
    let failed = |source| Error::Io {
        attempt: "cannot end the keeper of nexusd".to_owned(),
        source,
    };
    let pid = fs::read_to_string(path).map_err(failed)?;
    let mut kill = Command::new("taskkill");
    kill.args(["/F", "/PID", pid.trim()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    kill.status().map(drop).map_err(failed)
}

/// Whether a keeper runs: it holds a lock for as long.
fn is_kept() -> Result<bool, Error> {
    let path = folder("LOCALAPPDATA")?.join("nexus").join("keeper.lock");
    let Ok(file) = File::options().write(true).open(path) else {
        return Ok(false);
    };
    Ok(matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

fn installed() -> Option<String> {
    CURRENT_USER.open(RUN).ok()?.get_string(VALUE).ok()
}

/// The first byte of what Windows notes is odd where the user has said no.
fn is_switched_off() -> bool {
    let value = CURRENT_USER
        .open(APPROVED)
        .and_then(|key| key.get_value(VALUE));
    value.is_ok_and(|value| value.first().is_some_and(|byte| byte % 2 == 1))
}

fn command_of(nexusd: &str) -> String {
    format!("\"{nexusd}\" keeper")
}

/// The program in a command that `command_of` has made.
fn program_of(command: &str) -> &str {
    command.split('"').nth(1).unwrap_or(command)
}

fn log() -> Result<PathBuf, Error> {
    Ok(folder("LOCALAPPDATA")?.join(r"nexus\logs\nexusd.log"))
}

fn failed(attempt: &str, error: impl Into<io::Error>) -> Error {
    Error::Io {
        attempt: attempt.to_owned(),
        source: error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_started() {
        let command = command_of(r"C:\Program Files\Nexus\nexusd.exe");
        assert_eq!(command, r#""C:\Program Files\Nexus\nexusd.exe" keeper"#);
        assert_eq!(program_of(&command), r"C:\Program Files\Nexus\nexusd.exe");
    }
}
