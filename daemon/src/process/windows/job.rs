//! A job object: a set of processes that ends as one, at the latest when its only handle is closed, which
//! the system does for a daemon that was killed.

#![expect(unsafe_code, reason = "job objects have no safe interface")]

use std::{
    io,
    os::windows::io::{AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle},
    ptr,
};
use windows_sys::Win32::{
    Foundation::{DBG_TERMINATE_PROCESS, HANDLE, NTSTATUS, RtlNtStatusToDosError},
    System::JobObjects::{
        AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
        JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
        JobObjectExtendedLimitInformation, SetInformationJobObject, TerminateJobObject,
    },
};

// Std keeps the handle of the first thread to itself. The documented way round that is a list of all
// threads of the system; this is one call, as old as Windows XP.
#[link(name = "ntdll")]
unsafe extern "system" {
    fn NtResumeProcess(process: HANDLE) -> NTSTATUS;
}

#[derive(Debug)]
pub(super) struct Job(OwnedHandle);

impl Job {
    /// A job without processes, whose handle nobody inherits.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: both pointers may be null; a null handle is told apart below.
        let handle = unsafe { CreateJobObjectW(ptr::null(), ptr::null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle was just made and belongs to nobody else.
        let job = Self(unsafe { OwnedHandle::from_raw_handle(handle) });

        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        // A crash is to be an end, not a dialog that nobody sees.
        limits.BasicLimitInformation.LimitFlags =
            JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
        // SAFETY: the limits are of the type that goes with this class, and as long as is said.
        let set = unsafe {
            SetInformationJobObject(
                job.handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                size_of_val(&limits) as u32,
            )
        };
        if set == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(job)
    }

    /// Takes in a process that was started suspended, and lets it run.
    pub(super) fn take_in(&self, process: BorrowedHandle<'_>) -> io::Result<()> {
        let process = process.as_raw_handle();
        // SAFETY: both handles are open for the length of the call.
        if unsafe { AssignProcessToJobObject(self.handle(), process) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle is open for the length of the call.
        let status = unsafe { NtResumeProcess(process) };
        if status < 0 {
            // SAFETY: a plain look-up.
            let code = unsafe { RtlNtStatusToDosError(status) };
            return Err(io::Error::from_raw_os_error(code.cast_signed()));
        }
        Ok(())
    }

    /// Ends all processes in it. The code tells that they did not end by themselves.
    pub(super) fn terminate(&self) {
        // It fails when nobody is left, which is what was wanted.
        // SAFETY: the handle is open for the length of the call.
        unsafe { TerminateJobObject(self.handle(), DBG_TERMINATE_PROCESS.cast_unsigned()) };
    }

    fn handle(&self) -> HANDLE {
        self.0.as_raw_handle()
    }
}
