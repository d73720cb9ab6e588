//! Which core everything runs on.
//!
//! A process that is woken on another core costs as much as a whole call, and the system chooses anew in every run: the
//! same relay takes 17 µs where all is kept on one core, and 55 to 80 µs where the system chooses. So the client has a core for itself,
//! and whatever it calls another one: each row is woken across cores as often as all the others.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores that this process was given.
pub(crate) struct Cores {
    all: CpuSet,
    apart: Option<(CpuSet, CpuSet)>,
}

impl Cores {
    /// `anywhere`: it is left to the system.
    pub(crate) fn new(anywhere: bool) -> Self {
        let all = sched_getaffinity(None).unwrap();
        let mut ours = (0..CpuSet::MAX_CPU).filter(|&core| all.is_set(core));
        let only = |core| {
            let mut set = CpuSet::new();
            set.set(core);
            set
        };
        let two = ours.next().zip(ours.next()).filter(|_| !anywhere);
        let apart = two.map(|(one, other)| (only(one), only(other)));
        Self { all, apart }
    }

    /// What is started from now on has a core without us.
    pub(crate) fn for_peer(&self) {
        self.stay(self.apart.as_ref().map(|(_, peer)| peer));
    }

    /// We have a core without what was started.
    pub(crate) fn for_client(&self) {
        self.stay(self.apart.as_ref().map(|(client, _)| client));
    }

    /// We, and what is started from now on, run anywhere.
    pub(crate) fn for_all(&self) {
        self.stay(None);
    }

    fn stay(&self, on: Option<&CpuSet>) {
        sched_setaffinity(None, on.unwrap_or(&self.all)).unwrap();
    }
}
