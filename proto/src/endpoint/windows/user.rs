//! Which user a process belongs to, as the text of a SID.

#![expect(unsafe_code, reason = "tokens and SIDs have no safe interface")]

use std::{
    io,
    os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle},
    ptr,
};
use windows_sys::{
    Win32::{
        Foundation::{HANDLE, LocalFree},
        Security::{
            Authorization::ConvertSidToStringSidW, GetTokenInformation, TOKEN_QUERY, TOKEN_USER,
            TokenUser,
        },
        System::Threading::{
            GetCurrentProcess, OpenProcess, OpenProcessToken, PROCESS_QUERY_LIMITED_INFORMATION,
        },
    },
    core::PWSTR,
};

/// The user that this process runs as.
pub(super) fn current_sid() -> io::Result<String> {
    // SAFETY: the pseudo-handle of the current process is always valid and is never closed.
    sid_of(unsafe { GetCurrentProcess() })
}

/// The user that a process runs as.
pub(super) fn sid_of_process(pid: u32) -> io::Result<String> {
    // SAFETY: a plain call; a null handle is told apart below.
    let process = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
    if process.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just opened and belongs to nobody else.
    let process = unsafe { OwnedHandle::from_raw_handle(process) };
    sid_of(process.as_raw_handle())
}

fn sid_of(process: HANDLE) -> io::Result<String> {
    let mut token: HANDLE = ptr::null_mut();
    // SAFETY: `process` is valid for the call and `token` is a place to write to.
    if unsafe { OpenProcessToken(process, TOKEN_QUERY, &mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just opened and belongs to nobody else.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };

    // A TOKEN_USER with the largest SID there can be takes 16 + 68 bytes; u64 for its alignment.
    let mut buffer = [0_u64; 32];
    let mut length = 0;
    // SAFETY: the buffer is as long as is said.
    let read = unsafe {
        GetTokenInformation(
            token.as_raw_handle(),
            TokenUser,
            buffer.as_mut_ptr().cast(),
            size_of_val(&buffer) as u32,
            &mut length,
        )
    };
    if read == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: on success the buffer begins with a TOKEN_USER, and is aligned for one.
    let user = unsafe { &*buffer.as_ptr().cast::<TOKEN_USER>() };
    let mut text: PWSTR = ptr::null_mut();
    // SAFETY: the SID lies within the buffer, which outlives the call.
    if unsafe { ConvertSidToStringSidW(user.User.Sid, &mut text) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: on success `text` is a string that ends with zero, ours to free.
    unsafe {
        let length = (0..).take_while(|&i| *text.add(i) != 0).count();
        let sid = String::from_utf16_lossy(std::slice::from_raw_parts(text, length));
        LocalFree(text.cast());
        Ok(sid)
    }
}
