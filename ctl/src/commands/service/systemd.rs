//! systemd, for one user's own manager or for the system's.

use super::{program::find_nexusd, unit};
use crate::{
    cli::service::{Service, Verb, Which},
    commands::Context,
    exit::Error,
};
use serde::Serialize;
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Where packages put units.
const PACKAGED: [&str; 3] = ["/usr/lib/systemd", "/lib/systemd", "/usr/local/lib/systemd"];

/// Which manager, and what it calls us.
struct Manager {
    system: Option<String>,
}

#[derive(Serialize)]
struct StatusJson {
    installed: bool,
    active: bool,
    socket_active: bool,
    pid: Option<u32>,
    status: String,
}

pub(super) async fn run(context: &Context, args: Service) -> Result<(), Error> {
    let manager = |which: &Which| Manager {
        system: which.system.clone(),
    };
    match args.verb {
        Verb::Install(args) => {
            let manager = manager(&args.which);
            if !args.no_start {
                manager.check_alone(context).await?;
            }
            manager.install(context, args.nexusd, !args.no_start)
        }
        Verb::Uninstall(which) => manager(&which).uninstall(context),
        Verb::Start(which) => {
            let manager = manager(&which);
            manager.check_installed()?;
            manager.check_alone(context).await?;
            manager.start()?;
            manager.show(context)
        }
        Verb::Stop(which) => {
            let manager = manager(&which);
            // The socket first: the next client would start it again.
            manager.tell("stop", &[manager.socket(), manager.service()])?;
            manager.show(context)
        }
        Verb::Status(which) => manager(&which).show(context),
    }
}

impl Manager {
    fn install(
        &self,
        context: &Context,
        nexusd: Option<PathBuf>,
        start: bool,
    ) -> Result<(), Error> {
        let nexusd = find_nexusd(nexusd)?;
        if !self.is_packaged() || nexusd != Path::new("/usr/bin/nexusd") {
            let program = nexusd.to_string_lossy();
            let (service, socket) = match self.system {
                None => (unit::USER_SERVICE, unit::USER_SOCKET),
                Some(_) => (unit::SYSTEM_SERVICE, unit::SYSTEM_SOCKET),
            };
            for (name, text) in [("service", service), ("socket", socket)] {
                let path = self.folder()?.join(self.file(name));
                write(context, &path, &unit::written(text, &program))?;
            }
        }
        if self.system.is_none()
            && let Some(path) = env::var_os("PATH").and_then(|path| path.into_string().ok())
        {
            write(context, &self.drop_in()?, &unit::search_path(&path))?;
        }
        self.systemctl(&["daemon-reload"])?;
        self.tell("enable", &self.units())?;
        if start {
            // One that runs with its own socket would keep systemd from making its.
            self.tell("stop", &[self.service()])?;
            self.start()?;
        }
        self.show(context)?;
        if self.system.is_none() {
            context
                .output
                .note("it ends when you log out; `loginctl enable-linger` keeps it");
        }
        Ok(())
    }

    fn start(&self) -> Result<(), Error> {
        if self.told(&self.service(), "ActiveState")? != "active" {
            self.tell("start", &[self.socket()])?;
        }
        self.tell("start", &[self.service()])
    }

    /// A daemon that somebody started by hand holds the socket.
    async fn check_alone(&self, context: &Context) -> Result<(), Error> {
        if self.system.is_some() {
            return Ok(());
        }
        let Ok(nexus) = context.connect().await else {
            return Ok(());
        };
        let pid = nexus.daemon().status().await?.pid;
        if self.told(&self.service(), "MainPID")? == pid.to_string() {
            return Ok(());
        }
        Err(Error::Usage {
            message: format!("a daemon runs already that is no service, pid {pid}"),
            hint: Some("`nexusctl shutdown` stops it; then try again".to_owned()),
        })
    }

    fn uninstall(&self, context: &Context) -> Result<(), Error> {
        // What is not there need not be stopped.
        let _ = self.tell("disable", &self.units());
        let _ = self.tell("stop", &[self.socket(), self.service()]);
        let mut files = vec![
            self.folder()?.join(self.file("service")),
            self.folder()?.join(self.file("socket")),
        ];
        if self.system.is_none() {
            files.push(self.drop_in()?);
        }
        for file in files {
            remove(context, &file)?;
        }
        if self.system.is_none()
            && let Some(folder) = self.drop_in()?.parent()
        {
            // Somebody else's drop-ins stay.
            let _ = fs::remove_dir(folder);
        }
        self.systemctl(&["daemon-reload"])?;
        context
            .output
            .note("the service is gone; your configuration stays");
        Ok(())
    }

    fn show(&self, context: &Context) -> Result<(), Error> {
        let (service, socket) = (self.service(), self.socket());
        let status = StatusJson {
            installed: self.told(&service, "LoadState")? == "loaded",
            active: self.told(&service, "ActiveState")? == "active",
            socket_active: self.told(&socket, "ActiveState")? == "active",
            pid: self
                .told(&service, "MainPID")?
                .parse()
                .ok()
                .filter(|pid| *pid > 0),
            status: self.told(&service, "StatusText")?,
        };
        if context.output.json {
            return context.output.value(&status);
        }
        let text = match (&status, status.pid) {
            (
                StatusJson {
                    installed: false, ..
                },
                _,
            ) => "not installed; `nexusctl service install` does that".to_owned(),
            (StatusJson { active: true, .. }, Some(pid)) => {
                format!("{service} runs, pid {pid}: {}", status.status)
            }
            (
                StatusJson {
                    socket_active: true,
                    ..
                },
                _,
            ) => {
                format!("{service} is started by the first client")
            }
            _ => format!("{service} is installed and does not run"),
        };
        context.output.line(&text)
    }

    /// What systemd says of a unit.
    fn told(&self, unit: &str, property: &str) -> Result<String, Error> {
        let output = self
            .command(&["show", "--value", "-p", property, unit])
            .output();
        let output = output.map_err(|source| Error::Io {
            attempt: "cannot run systemctl: is this a system with systemd?".to_owned(),
            source,
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Io {
            attempt: "systemd does not answer".to_owned(),
            source: io::Error::other(said),
        })
    }

    fn check_installed(&self) -> Result<(), Error> {
        let found = self.is_packaged() || self.folder()?.join(self.file("service")).exists();
        if found {
            return Ok(());
        }
        Err(Error::Usage {
            message: "the service is not installed".to_owned(),
            hint: Some("`nexusctl service install` does that".to_owned()),
        })
    }

    fn is_packaged(&self) -> bool {
        let kind = if self.system.is_some() {
            "system"
        } else {
            "user"
        };
        let mut folders = PACKAGED.iter();
        folders.any(|folder| {
            Path::new(folder)
                .join(kind)
                .join(self.file("service"))
                .exists()
        })
    }

    fn file(&self, kind: &str) -> String {
        match self.system {
            None => format!("nexusd.{kind}"),
            Some(_) => format!("nexusd@.{kind}"),
        }
    }

    fn service(&self) -> String {
        match &self.system {
            None => "nexusd.service".to_owned(),
            Some(user) => format!("nexusd@{user}.service"),
        }
    }

    fn socket(&self) -> String {
        self.service().replace(".service", ".socket")
    }

    fn units(&self) -> [String; 2] {
        [self.socket(), self.service()]
    }

    fn folder(&self) -> Result<PathBuf, Error> {
        if self.system.is_some() {
            return Ok("/etc/systemd/system".into());
        }
        let folder = |name: &str| {
            let path = env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let base = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        base.map(|base| base.join("systemd/user"))
            .ok_or_else(|| Error::usage("neither XDG_CONFIG_HOME nor HOME is set"))
    }

    fn drop_in(&self) -> Result<PathBuf, Error> {
        Ok(self.folder()?.join("nexusd.service.d/path.conf"))
    }

    fn tell(&self, verb: &str, units: &[String]) -> Result<(), Error> {
        let mut words = vec![verb];
        words.extend(units.iter().map(String::as_str));
        self.systemctl(&words)
    }

    fn systemctl(&self, words: &[&str]) -> Result<(), Error> {
        let output = self.command(words).output().map_err(|source| Error::Io {
            attempt: "cannot run systemctl: is this a system with systemd?".to_owned(),
            source,
        })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Io {
            attempt: format!("`systemctl {}` failed", words.join(" ")),
            source: io::Error::other(said),
        })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("systemctl");
        if self.system.is_none() {
            command.arg("--user");
        }
        command.args(words).stdin(Stdio::null());
        command
    }
}

fn write(context: &Context, path: &Path, text: &str) -> Result<(), Error> {
    let failed = |source| Error::Io {
        attempt: format!("cannot write {}", path.display()),
        source,
    };
    let before = fs::read_to_string(path).unwrap_or_default();
    if !before.is_empty() && !unit::is_ours(&before) {
        context
            .output
            .warn(&format!("{} is left as it is", path.display()));
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)?;
    context.output.note(&format!("wrote {}", path.display()));
    Ok(())
}

/// Removes what we have written, and nothing else.
fn remove(context: &Context, path: &Path) -> Result<(), Error> {
    let Ok(text) = fs::read_to_string(path) else {
        return Ok(());
    };
    if !unit::is_ours(&text) {
        context
            .output
            .warn(&format!("{} is left as it is", path.display()));
        return Ok(());
    }
    fs::remove_file(path).map_err(|source| Error::Io {
        attempt: format!("cannot remove {}", path.display()),
        source,
    })?;
    context.output.note(&format!("removed {}", path.display()));
    Ok(())
}
