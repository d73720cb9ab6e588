//! Which user a process, a client or a file belongs to, as the text of a SID.

#![expect(unsafe_code, reason = "tokens and SIDs have no safe interface")]

use std::{
    io,
    os::windows::{
        ffi::OsStrExt as _,
        io::{AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle},
    },
    path::Path,
    ptr,
};
use windows_sys::{
    Win32::{
        Foundation::{ERROR_SUCCESS, HANDLE, LocalFree},
        Security::{
            Authorization::{
                ConvertSidToStringSidW, GetNamedSecurityInfoW, GetSecurityInfo, SE_FILE_OBJECT,
                SE_KERNEL_OBJECT,
            },
            GetTokenInformation, LookupAccountNameW, OWNER_SECURITY_INFORMATION, PSID,
            RevertToSelf, TOKEN_QUERY, TOKEN_USER, TokenUser,
        },
        System::{
            Pipes::ImpersonateNamedPipeClient,
            Threading::{
                GetCurrentProcess, GetCurrentThread, OpenProcess, OpenProcessToken,
                OpenThreadToken, PROCESS_QUERY_LIMITED_INFORMATION,
            },
        },
    },
    core::PWSTR,
};

/// The system itself.
pub const SYSTEM: &str = "S-1-5-18";

/// Those who administer this machine.
pub const ADMINISTRATORS: &str = "S-1-5-32-544";

/// The account that belongs to the service of the name `nexusd`, and to no other: the system makes it of
/// the name's SHA-1.
pub const SERVICE: &str = "S-1-5-80-3015920605-2990451326-1705268091-907610052-1760266025";

/// The user that this process runs as.
pub fn current_sid() -> io::Result<String> {
    // SAFETY: the pseudo-handle of the current process is always valid and is never closed.
    sid_of_process(unsafe { GetCurrentProcess() })
}

/// The user at the other end of a pipe: who opened it, if that can be told before the first word, else
/// who runs the process that did.
pub(super) fn sid_of_client(pipe: BorrowedHandle<'_>, pid: Option<u32>) -> io::Result<String> {
    match (sid_of_opener(pipe), pid) {
        (Ok(sid), _) => Ok(sid),
        (Err(_), Some(pid)) => sid_of_pid(pid),
        (Err(error), None) => Err(error),
    }
}

fn sid_of_opener(pipe: BorrowedHandle<'_>) -> io::Result<String> {
    /// Ends the impersonation however we leave.
    struct Revert;
    impl Drop for Revert {
        fn drop(&mut self) {
            // SAFETY: a plain call.
            if unsafe { RevertToSelf() } == 0 {
                // To go on as somebody else is worse than to end.
                std::process::abort();
            }
        }
    }
    // SAFETY: the handle is open for the length of the call.
    if unsafe { ImpersonateNamedPipeClient(pipe.as_raw_handle()) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let revert = Revert;
    let mut token: HANDLE = ptr::null_mut();
    // As ourselves: the client's own rights need not suffice to look at its token.
    // SAFETY: the pseudo-handle is always valid, and `token` is a place to write to.
    let opened = unsafe { OpenThreadToken(GetCurrentThread(), TOKEN_QUERY, 1, &mut token) };
    let error = io::Error::last_os_error();
    drop(revert);
    if opened == 0 {
        return Err(error);
    }
    // SAFETY: the handle was just opened and belongs to nobody else.
    sid_of_token(&unsafe { OwnedHandle::from_raw_handle(token) })
}

fn sid_of_pid(pid: u32) -> io::Result<String> {
    // SAFETY: a plain call; a null handle is told apart below.
    let process = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
    if process.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just opened and belongs to nobody else.
    let process = unsafe { OwnedHandle::from_raw_handle(process) };
    sid_of_process(process.as_raw_handle())
}

fn sid_of_process(process: HANDLE) -> io::Result<String> {
    let mut token: HANDLE = ptr::null_mut();
    // SAFETY: `process` is valid for the call and `token` is a place to write to.
    if unsafe { OpenProcessToken(process, TOKEN_QUERY, &mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just opened and belongs to nobody else.
    sid_of_token(&unsafe { OwnedHandle::from_raw_handle(token) })
}

fn sid_of_token(token: &OwnedHandle) -> io::Result<String> {
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
    // SAFETY: on success the buffer begins with a TOKEN_USER, and is aligned for one; the SID lies within
    // the buffer, which outlives the call.
    unsafe { text_of((*buffer.as_ptr().cast::<TOKEN_USER>()).User.Sid) }
}

/// Who owns what a handle stands for.
pub(super) fn owner_of(object: BorrowedHandle<'_>) -> io::Result<String> {
    owner(|sid, descriptor| {
        // SAFETY: the handle is open for the length of the call; both places can be written to, and the
        // others may be null.
        unsafe {
            GetSecurityInfo(
                object.as_raw_handle(),
                SE_KERNEL_OBJECT,
                OWNER_SECURITY_INFORMATION,
                sid,
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
                descriptor,
            )
        }
    })
}

/// Who owns a file.
pub fn owner_of_file(path: &Path) -> io::Result<String> {
    let name: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
    owner(|sid, descriptor| {
        // SAFETY: the name ends with zero; both places can be written to, and the others may be null.
        unsafe {
            GetNamedSecurityInfoW(
                name.as_ptr(),
                SE_FILE_OBJECT,
                OWNER_SECURITY_INFORMATION,
                sid,
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
                descriptor,
            )
        }
    })
}

/// Reads the owner with the help of one of the two calls above.
fn owner(
    read: impl FnOnce(*mut PSID, *mut windows_sys::Win32::Security::PSECURITY_DESCRIPTOR) -> u32,
) -> io::Result<String> {
    let (mut sid, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
    let code = read(&mut sid, &mut descriptor);
    if code != ERROR_SUCCESS {
        return Err(io::Error::from_raw_os_error(code.cast_signed()));
    }
    if sid.is_null() {
        return Err(io::Error::other("it has no owner"));
    }
    // SAFETY: on success the SID lies within the descriptor, which is ours to free.
    unsafe {
        let text = text_of(sid);
        LocalFree(descriptor);
        text
    }
}

/// The SID of an account: `alice`, `DOMAIN\alice`. One that is a SID already stays.
pub fn sid_of_account(name: &str) -> io::Result<String> {
    if name.starts_with("S-1-") {
        return Ok(name.to_owned());
    }
    let wide: Vec<u16> = name.encode_utf16().chain([0]).collect();
    let mut sid = [0_u64; 16];
    let mut domain = [0_u16; 256];
    let (mut sid_length, mut domain_length) = (size_of_val(&sid) as u32, domain.len() as u32);
    let mut kind = 0;
    // SAFETY: the name ends with zero, and the buffers are as long as is said.
    let found = unsafe {
        LookupAccountNameW(
            ptr::null(),
            wide.as_ptr(),
            sid.as_mut_ptr().cast(),
            &mut sid_length,
            domain.as_mut_ptr(),
            &mut domain_length,
            &mut kind,
        )
    };
    if found == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: on success the buffer holds a SID.
    unsafe { text_of(sid.as_mut_ptr().cast()) }
}

/// # Safety
/// It must be a valid SID.
unsafe fn text_of(sid: PSID) -> io::Result<String> {
    let mut text: PWSTR = ptr::null_mut();
    // SAFETY: the caller's word for the SID, and `text` is a place to write to.
    if unsafe { ConvertSidToStringSidW(sid, &mut text) } == 0 {
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
