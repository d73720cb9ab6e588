//! Which of the faults asked for is due.

use super::{Fault, FaultSpec};

/// The faults of one process.
#[derive(Debug, Default)]
pub(crate) struct Plan(Vec<FaultSpec>);

impl Plan {
    pub(crate) fn new(faults: Vec<FaultSpec>) -> Plan {
        Plan(faults)
    }

    /// Well-behaved servers skip all further questions by this one.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of a fault, if it was asked for.
    pub(crate) fn number(&self, fault: Fault) -> Option<u64> {
        self.0
            .iter()
            .find(|spec| spec.fault == fault)
            .map(|spec| spec.number)
    }

    /// Whether a fault was asked for at all.
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.number(fault).is_some()
    }

    /// Whether a fault is due at exactly this occurrence.
    pub(crate) fn at(&self, fault: Fault, occurrence: u64) -> bool {
        self.0
            .iter()
            .any(|spec| spec.fault == fault && spec.number == occurrence)
    }

    /// Whether a fault is due at this occurrence or was at an earlier one.
    pub(crate) fn since(&self, fault: Fault, occurrence: u64) -> bool {
        self.0
            .iter()
            .any(|spec| spec.fault == fault && spec.number <= occurrence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_given_twice_is_due_at_both_numbers() {
        let plan = Plan::new(vec!["late@2".parse().unwrap(), "late@5".parse().unwrap()]);
        let due: Vec<u64> = (1..8).filter(|n| plan.at(Fault::Late, *n)).collect();
        assert_eq!(due, [2, 5]);
        assert!(!plan.at(Fault::Exit, 2));
    }

    #[test]
    fn a_lasting_fault_stays_due() {
        let plan = Plan::new(vec!["list-error@3".parse().unwrap()]);
        let due: Vec<u64> = (1..6)
            .filter(|n| plan.since(Fault::ListError, *n))
            .collect();
        assert_eq!(due, [3, 4, 5]);
    }
}
