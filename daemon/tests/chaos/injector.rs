//! Does to servers and to the daemon what the world does to them.

use crate::{client::Load, dice::Dice, processes::Target, recovery::Kill, roster::Roster};
use nexus_client::{Error, Nexus, Server, ServerState, Wait};
use rustix::process::Signal;
use std::{ops::RangeInclusive, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    Freeze,
    Restart,
    StopAndStart,
    Reload,
}

const FAULTS: &[(u64, Fault)] = &[
    (40, Fault::Kill),
    (25, Fault::Freeze),
    (13, Fault::Restart),
    (12, Fault::StopAndStart),
    (10, Fault::Reload),
];

pub(crate) struct Injector {
    nexus: Nexus,
    daemon: Target,
    roster: Roster,
    load: Arc<Load>,
    dice: Dice,
    with_guest: bool,
    kills: Vec<Kill>,
    under_way: JoinSet<Result<(), Error>>,
    problems: Vec<String>,
}

impl Injector {
    pub(crate) fn new(nexus: Nexus, daemon: Target, roster: Roster, load: Arc<Load>) -> Self {
        Self {
            nexus,
            daemon,
            roster,
            dice: Dice::new(load.seed, 0),
            load,
            with_guest: false,
            kills: Vec::new(),
            under_way: JoinSet::new(),
            problems: Vec::new(),
        }
    }

    /// A fault after every pause, until a moment. Whoever was frozen or stopped goes on after that.
    pub(crate) async fn run(
        mut self,
        until: Instant,
        pause: RangeInclusive<u64>,
    ) -> (Vec<Kill>, Vec<String>) {
        let keeper = tokio::spawn(keep(self.nexus.clone(), Arc::clone(&self.load)));
        while Instant::now() < until {
            let done = self.inject().await;
            self.note(done);
            sleep(self.dice.millis(pause.clone())).await;
        }
        while let Some(done) = self.under_way.join_next().await {
            self.note(done.unwrap());
        }
        keeper.abort();
        self.roster.configure(false);
        let reloaded = self.nexus.daemon().reload().await;
        self.note(reloaded.map(drop));
        (self.kills, self.problems)
    }

    /// A command may be refused: the server may be gone, or be ended by the next fault. Anything else is
    /// not to happen.
    fn note(&mut self, done: Result<(), Error>) {
        if let Err(error) = done
            && !matches!(error, Error::Failed(_))
        {
            self.problems.push(format!("a command failed: {error}"));
        }
    }

    async fn inject(&mut self) -> Result<(), Error> {
        let (nexus, load) = (self.nexus.clone(), Arc::clone(&self.load));
        match self.dice.weighted(FAULTS) {
            Fault::Kill => {
                let Some((server, target)) = self.victim().await? else {
                    return Ok(());
                };
                let kill = Kill::now(&server.name, target.pid, self.load.epoch.elapsed());
                if target.signal(Signal::KILL) {
                    load.tally.count("kill -9");
                    self.kills.push(kill);
                }
            }
            Fault::Freeze => {
                let Some((_, target)) = self.victim().await? else {
                    return Ok(());
                };
                let time = match self.dice.within(0..=9) {
                    0 => self.dice.millis(1500..=3000),
                    _ => self.dice.millis(10..=400),
                };
                if target.signal(Signal::STOP) {
                    load.tally.count("frozen");
                    self.under_way.spawn(async move {
                        sleep(time).await;
                        target.signal(Signal::CONT);
                        Ok(())
                    });
                }
            }
            Fault::Restart => {
                load.tally.count("restart");
                let name = self.dice.pick(&self.load.servers).clone();
                nexus.servers().restart(&name, Wait::No).await?;
            }
            Fault::StopAndStart => {
                load.tally.count("stop and start");
                let name = self.dice.pick(&self.load.servers).clone();
                let time = self.dice.millis(0..=300);
                nexus.servers().stop(&name, Wait::No).await?;
                self.under_way.spawn(async move {
                    sleep(time).await;
                    nexus.servers().start(&name, Wait::No).await.map(drop)
                });
            }
            Fault::Reload => {
                load.tally.count("reload");
                self.with_guest = !self.with_guest;
                self.roster.configure(self.with_guest);
                self.daemon.signal(Signal::HUP);
            }
        }
        Ok(())
    }

    /// A server that lives, and its process: a child of the daemon, or nobody.
    async fn victim(&mut self) -> Result<Option<(Server, Target)>, Error> {
        let servers = self.nexus.servers().list().await?;
        let server = self.dice.pick(&servers).clone();
        let target = server
            .pid
            .and_then(|pid| Target::child_of(self.daemon.pid, pid));
        Ok(target.map(|target| (server, target)))
    }
}

/// Somebody who starts again what has ended too often: else all servers would soon be given up.
async fn keep(nexus: Nexus, load: Arc<Load>) {
    loop {
        sleep(Duration::from_millis(100)).await;
        let Ok(servers) = nexus.servers().list().await else {
            return;
        };
        for server in servers {
            if matches!(server.state, ServerState::CrashLoop | ServerState::Failed) {
                load.tally.count_other("started again by hand");
                let _ = nexus.servers().start(&server.name, Wait::No).await;
            }
        }
    }
}
