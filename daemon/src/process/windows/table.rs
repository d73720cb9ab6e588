//! The table of processes, as Windows tells it.
#![expect(unsafe_code, reason = "the table has no safe interface")]

use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use windows_sys::Win32::{
    Foundation::INVALID_HANDLE_VALUE,
    System::Diagnostics::ToolHelp::{
        CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW,
        TH32CS_SNAPPROCESS,
    },
};

/// All processes: the number, that of whoever started it, and the program's file.
pub fn processes() -> Vec<(u32, u32, String)> {
    let mut all = Vec::new();
    // SAFETY: no pointers are given.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return all;
    }
    // SAFETY: the handle is ours, and nobody else closes it.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut entry = PROCESSENTRY32W {
        dwSize: size_of::<PROCESSENTRY32W>() as u32,
        // SAFETY: a structure of numbers.
        ..unsafe { std::mem::zeroed() }
    };
    // SAFETY: the handle is open, and the entry says how large it is.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
    while more != 0 {
        let name = &entry.szExeFile;
        let len = name
            .iter()
            .position(|unit| *unit == 0)
            .unwrap_or(name.len());
        let name = String::from_utf16_lossy(&name[..len]);
        all.push((entry.th32ProcessID, entry.th32ParentProcessID, name));
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
    }
    all
}
