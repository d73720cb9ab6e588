//! Windows: what there is of it.

use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle, RawHandle};

use windows_sys::Win32::System::Console::{
    STD_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle,
};

/// Dies in the way that comes nearest to a crash.
pub(crate) fn crash() -> ! {
    std::process::abort()
}

/// Closes our end of the pipe.
pub(crate) fn close_stdout() {
    close(STD_OUTPUT_HANDLE, io::stdout().as_raw_handle());
}

/// Closes the pipe we read.
pub(crate) fn close_stdin() {
    close(STD_INPUT_HANDLE, io::stdin().as_raw_handle());
}

#[expect(unsafe_code, reason = "std has no safe way to close a standard handle")]
fn close(which: STD_HANDLE, handle: RawHandle) {
    // SAFETY: std asks for the standard handle anew at each use and takes null for none, so that nobody uses the old
    // one once it is replaced; it is open until now and closed only here.
    unsafe {
        SetStdHandle(which, std::ptr::null_mut());
        drop(OwnedHandle::from_raw_handle(handle));
    }
}

/// There is no SIGTERM to ignore.
pub(crate) fn ignore_term() -> io::Result<()> {
    Ok(())
}

/// There are no sessions to leave.
pub(crate) fn leave_session() {}
