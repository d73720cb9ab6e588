//! A true service: the manager of Windows starts it with the machine, under an account of its own that
//! may do little (`NT SERVICE\nexusd`), and starts it again when it has crashed. It has a pipe of its own,
//! which one user may open besides it.

use super::{GLANCE, PATIENCE, StatusJson, folder, not_installed};
use crate::{
    commands::{Context, service::program::find_nexusd},
    exit::Error,
};
use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use windows_service::{
    Error as ServiceError,
    service::{
        Service, ServiceAccess, ServiceAction, ServiceActionType, ServiceErrorControl,
        ServiceExitCode, ServiceFailureActions, ServiceFailureResetPeriod, ServiceInfo,
        ServiceStartType, ServiceState, ServiceStatus, ServiceType,
    },
    service_manager::{ServiceManager, ServiceManagerAccess},
};

const NAME: &str = "nexusd";
const ACCOUNT: &str = r"NT SERVICE\nexusd";
const DESCRIPTION: &str = "One pool of MCP servers for every agent on this machine.";

/// The service's pipe: `nexusctl --socket nexusd-service`.
const PIPE: &str = "nexusd-service";

/// The pauses before it is started again, the last of them from then on, and after how long without a
/// crash all is forgotten.
const PAUSES: [u64; 3] = [1, 5, 30];
const FORGET: Duration = Duration::from_secs(3600);

/// How long Windows waits for it when the machine goes down: as long as a stop may take.
const PRESHUTDOWN: Duration = Duration::from_secs(30);

/// What Windows says.
const ACCESS_DENIED: i32 = 5;
const NO_SUCH_SERVICE: i32 = 1060;
const NOT_RUNNING: i32 = 1062;
const BUSY: i32 = 1055;
const RUNS_ALREADY: i32 = 1056;
const EXISTS: i32 = 1073;

pub(super) async fn install(
    context: &Context,
    user: &str,
    nexusd: Option<PathBuf>,
    start_now: bool,
) -> Result<(), Error> {
    let nexusd = find_nexusd(nexusd)?;
    check_reachable(&nexusd)?;
    let data = data()?;
    let user = match user {
        "" => whoever_installs()?,
        user => user.to_owned(),
    };
    let service = create(&nexusd, &data, &user)?;
    service
        .set_description(DESCRIPTION)
        .map_err(|error| failed("cannot describe the service", error))?;
    service
        .update_failure_actions(recovery())
        .map_err(|error| failed("cannot say what happens after a crash", error))?;
    // Both are niceties, and wine refuses the first.
    if service.set_delayed_auto_start(true).is_err() {
        let text = "it starts with the machine: this Windows cannot start it a little later";
        context.output.note(text);
    }
    let _ = service.set_preshutdown_timeout(PRESHUTDOWN);
    prepare(context, &data, &user)?;
    context.output.note(&format!(
        "it serves {}, logs to {}, and {user} uses it with --socket {PIPE}",
        data.join("mcp.json").display(),
        log(&data).display(),
    ));
    context.output.note(
        "it runs as NT SERVICE\\nexusd in session 0: without a desktop, your PATH, what npm has installed \
         for you, or your %APPDATA%; name programs with their full path",
    );
    if start_now {
        begin(&service).await?;
    }
    show(context)
}

pub(super) async fn uninstall(context: &Context) -> Result<(), Error> {
    let service = open(ServiceAccess::QUERY_STATUS | ServiceAccess::STOP | ServiceAccess::DELETE)?;
    end(&service).await?;
    service
        .delete()
        .map_err(|error| failed("cannot remove the service", error))?;
    let data = data()?;
    context
        .output
        .note(&format!("the service is gone; {} stays", data.display()));
    Ok(())
}

pub(super) async fn start(context: &Context) -> Result<(), Error> {
    let service = open(ServiceAccess::QUERY_STATUS | ServiceAccess::START)?;
    begin(&service).await?;
    show(context)
}

pub(super) async fn stop(context: &Context) -> Result<(), Error> {
    let service = open(ServiceAccess::QUERY_STATUS | ServiceAccess::STOP)?;
    end(&service).await?;
    show(context)
}

pub(super) fn show(context: &Context) -> Result<(), Error> {
    let now = match open(ServiceAccess::QUERY_STATUS) {
        Ok(service) => Some(query(&service)?),
        Err(Error::Usage { .. }) => None,
        Err(error) => return Err(error),
    };
    let pid = now.as_ref().and_then(|now| now.process_id);
    let status = match now.as_ref().map(|now| (now.current_state, now.exit_code)) {
        None => "not installed; `nexusctl service install --system` does that".to_owned(),
        Some((ServiceState::Running, _)) => match pid {
            Some(pid) => format!("the service {NAME} runs, pid {pid}"),
            None => format!("the service {NAME} runs"),
        },
        Some((ServiceState::Stopped, ServiceExitCode::ServiceSpecific(code))) => {
            format!("the service {NAME} is installed and has ended with exit code {code}")
        }
        Some((ServiceState::Stopped, _)) => {
            format!("the service {NAME} is installed and does not run")
        }
        Some((state, _)) => format!("the service {NAME} is between states: {state:?}"),
    };
    let status = StatusJson {
        installed: now.is_some(),
        active: now.is_some_and(|now| now.current_state == ServiceState::Running),
        pid,
        status,
    };
    status.show(context)
}

/// Where the service has its configuration, and what it keeps.
fn data() -> Result<PathBuf, Error> {
    Ok(folder("ProgramData")?.join("nexus"))
}

fn log(data: &Path) -> PathBuf {
    data.join("logs").join("nexusd.log")
}

/// What lies in a user's folders the service's account cannot read.
fn check_reachable(nexusd: &Path) -> Result<(), Error> {
    let homes = env::var("PUBLIC").ok();
    let homes = homes
        .as_deref()
        .and_then(|public| Path::new(public).parent());
    if !homes.is_some_and(|homes| nexusd.starts_with(homes)) {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!("a service cannot read {}", nexusd.display()),
        hint: Some(
            r"put nexusd.exe where all may read it, as in C:\Program Files\Nexus, and say --nexusd PATH"
                .to_owned(),
        ),
    })
}

fn whoever_installs() -> Result<String, Error> {
    let name = env::var("USERNAME").map_err(|_| Error::usage("USERNAME is not set"))?;
    Ok(match env::var("USERDOMAIN") {
        Ok(domain) => format!(r"{domain}\{name}"),
        Err(_) => name,
    })
}

/// Makes the service, or changes the one that there is.
fn create(nexusd: &Path, data: &Path, user: &str) -> Result<Service, Error> {
    let info = ServiceInfo {
        name: NAME.into(),
        display_name: "Nexus".into(),
        service_type: ServiceType::OWN_PROCESS,
        start_type: ServiceStartType::AutoStart,
        error_control: ServiceErrorControl::Normal,
        executable_path: nexusd.to_owned(),
        launch_arguments: arguments(data, user),
        dependencies: Vec::new(),
        account_name: Some(ACCOUNT.into()),
        account_password: None,
    };
    let access = ServiceAccess::QUERY_STATUS
        | ServiceAccess::CHANGE_CONFIG
        | ServiceAccess::START
        | ServiceAccess::STOP;
    let manager = manager(ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE)?;
    match manager.create_service(&info, access) {
        Err(error) if code(&error) == Some(EXISTS) => {
            let service = manager.open_service(NAME, access);
            let service = service.map_err(|error| failed("cannot open the service", error))?;
            service
                .change_config(&info)
                .map_err(|error| failed("cannot change the service", error))?;
            Ok(service)
        }
        made => made.map_err(|error| failed("cannot make the service", error)),
    }
}

/// All that differs from a daemon that is started by hand; `sc qc nexusd` shows it.
fn arguments(data: &Path, user: &str) -> Vec<OsString> {
    vec![
        "--config".into(),
        data.join("mcp.json").into(),
        "--state".into(),
        data.into(),
        "--log-file".into(),
        log(data).into(),
        "--socket".into(),
        PIPE.into(),
        "service".into(),
        "--client".into(),
        user.into(),
    ]
}

/// A crash is followed by a start. What the daemon itself reports as an error, such as a bad
/// configuration, is not: starting again would not help.
fn recovery() -> ServiceFailureActions {
    let restart = |seconds| ServiceAction {
        action_type: ServiceActionType::Restart,
        delay: Duration::from_secs(seconds),
    };
    ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(FORGET),
        reboot_msg: None,
        command: None,
        actions: Some(PAUSES.map(restart).to_vec()),
    }
}

/// Makes the folders of the service. What is there says which programs the service runs, so only
/// administrators may write it: in %ProgramData% everybody may make files.
fn prepare(context: &Context, data: &Path, user: &str) -> Result<(), Error> {
    let attempt = |path: &Path| format!("cannot make {}", path.display());
    for name in ["logs", "lists"] {
        let path = data.join(name);
        fs::create_dir_all(&path).map_err(|source| Error::Io {
            attempt: attempt(&path),
            source,
        })?;
    }
    let all = |account: &str, rights: &str| format!("{account}:(OI)(CI){rights}");
    let (system, administrators) = (all("*S-1-5-18", "F"), all("*S-1-5-32-544", "F"));
    let (service, reader) = (all(ACCOUNT, "RX"), all(user, "RX"));
    // The one who made a folder may change who has access to it.
    icacls(data, &["/setowner", "*S-1-5-32-544", "/q"])?;
    icacls(
        data,
        &[
            "/inheritance:r",
            "/grant:r",
            &system,
            &administrators,
            &service,
            &reader,
            "/q",
        ],
    )?;
    for name in ["logs", "lists"] {
        let path = data.join(name);
        icacls(&path, &["/reset", "/q"])?;
        icacls(&path, &["/grant:r", &all(ACCOUNT, "M"), "/q"])?;
    }
    let file = data.join("mcp.json");
    if file.exists() {
        context
            .output
            .note(&format!("{} was there already", file.display()));
        return Ok(());
    }
    fs::write(&file, "{ \"mcpServers\": {} }\n").map_err(|source| Error::Io {
        attempt: attempt(&file),
        source,
    })
}

fn icacls(path: &Path, words: &[&str]) -> Result<(), Error> {
    let output = Command::new("icacls")
        .arg(path)
        .args(words)
        .stdin(Stdio::null())
        .output();
    let failed = |source| Error::Io {
        attempt: format!("cannot say who may use {}", path.display()),
        source,
    };
    let output = output.map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(failed(io::Error::other(said)))
}

async fn begin(service: &Service) -> Result<(), Error> {
    let began = Instant::now();
    while let Err(error) = service.start::<&str>(&[]) {
        match code(&error) {
            Some(RUNS_ALREADY) => break,
            // The manager itself is starting others.
            Some(BUSY) if began.elapsed() < PATIENCE => sleep(GLANCE).await,
            _ => return Err(failed("cannot start the service", error)),
        }
    }
    let now = until(service, |state| {
        matches!(state, ServiceState::Running | ServiceState::Stopped)
    })
    .await?;
    if now.current_state == ServiceState::Running {
        return Ok(());
    }
    let log = log(&data()?);
    Err(Error::Usage {
        message: "the service does not stay".to_owned(),
        hint: Some(format!("{} says why", log.display())),
    })
}

async fn end(service: &Service) -> Result<(), Error> {
    match service.stop() {
        Err(error) if code(&error) == Some(NOT_RUNNING) => return Ok(()),
        stopped => {
            stopped.map_err(|error| failed("cannot stop the service", error))?;
        }
    }
    until(service, |state| state == ServiceState::Stopped).await?;
    Ok(())
}

/// Waits until the service is in such a state.
async fn until(
    service: &Service,
    wanted: impl Fn(ServiceState) -> bool,
) -> Result<ServiceStatus, Error> {
    let began = Instant::now();
    loop {
        let now = query(service)?;
        if wanted(now.current_state) {
            return Ok(now);
        }
        if began.elapsed() > PATIENCE {
            return Err(Error::Timeout(PATIENCE));
        }
        sleep(GLANCE).await;
    }
}

fn query(service: &Service) -> Result<ServiceStatus, Error> {
    service
        .query_status()
        .map_err(|error| failed("cannot ask for the service", error))
}

fn open(access: ServiceAccess) -> Result<Service, Error> {
    let opened = manager(ServiceManagerAccess::CONNECT)?.open_service(NAME, access);
    opened.map_err(|error| match code(&error) {
        Some(NO_SUCH_SERVICE) => not_installed(),
        _ => failed("cannot open the service", error),
    })
}

fn manager(access: ServiceManagerAccess) -> Result<ServiceManager, Error> {
    ServiceManager::local_computer(None::<&str>, access)
        .map_err(|error| failed("cannot reach the service manager", error))
}

fn code(error: &ServiceError) -> Option<i32> {
    match error {
        ServiceError::Winapi(error) => error.raw_os_error(),
        _ => None,
    }
}

fn failed(attempt: &str, error: ServiceError) -> Error {
    if code(&error) == Some(ACCESS_DENIED) {
        return Error::Usage {
            message: format!("{attempt}: access is denied"),
            hint: Some("open the terminal with \"Run as administrator\"".to_owned()),
        };
    }
    Error::Io {
        attempt: attempt.to_owned(),
        source: match error {
            ServiceError::Winapi(source) => source,
            error => io::Error::other(error),
        },
    }
}
