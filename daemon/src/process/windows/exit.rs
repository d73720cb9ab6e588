//! How a process ended: a code of its own, or the name of what the system ended it for.

use std::process::ExitStatus;
use windows_sys::Win32::Foundation as codes;

pub(in crate::process) fn describe_exit(status: ExitStatus) -> String {
    status
        .code()
        .map_or_else(|| "an unknown end".to_owned(), describe)
}

fn describe(code: i32) -> String {
    match name(code) {
        Some(name) => format!("exit code {code:#010X} ({name})"),
        // Small ones below zero are a program's own: `exit(-1)`. Those far below are the system's.
        None if code < -0xFFFF => format!("exit code {code:#010X}"),
        None => format!("exit code {code}"),
    }
}

/// What the codes that are seen in practice mean.
fn name(code: i32) -> Option<&'static str> {
    const CPP_EXCEPTION: i32 = 0xE06D_7363_u32.cast_signed();
    const DOTNET_EXCEPTION: i32 = 0xE043_4352_u32.cast_signed();
    Some(match code {
        codes::DBG_TERMINATE_PROCESS => "ended from outside",
        codes::DBG_CONTROL_C | codes::STATUS_CONTROL_C_EXIT => "Ctrl-C, or its console was closed",
        codes::DBG_CONTROL_BREAK => "Ctrl-Break",
        codes::STATUS_ACCESS_VIOLATION => "access violation",
        codes::STATUS_BREAKPOINT => "breakpoint",
        codes::STATUS_DLL_INIT_FAILED => "a DLL could not be initialized",
        codes::STATUS_DLL_NOT_FOUND => "a DLL was not found",
        codes::STATUS_ENTRYPOINT_NOT_FOUND => "a DLL lacks a function",
        codes::STATUS_HEAP_CORRUPTION => "heap corruption",
        codes::STATUS_ILLEGAL_INSTRUCTION => "illegal instruction",
        codes::STATUS_IN_PAGE_ERROR => "a page could not be read from disk",
        codes::STATUS_INTEGER_DIVIDE_BY_ZERO => "division by zero",
        codes::STATUS_INVALID_IMAGE_FORMAT => "a DLL is for another kind of processor",
        codes::STATUS_NO_MEMORY | codes::STATUS_COMMITMENT_LIMIT => "out of memory",
        // Named after what it was first used for; every abort() ends so now.
        codes::STATUS_STACK_BUFFER_OVERRUN => "aborted",
        codes::STATUS_STACK_OVERFLOW => "stack overflow",
        CPP_EXCEPTION => "C++ exception",
        DOTNET_EXCEPTION => ".NET exception",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_codes_are_named_and_a_programs_own_are_numbers() {
        let describe = |code: u32| describe(code.cast_signed());
        assert_eq!(describe(0), "exit code 0");
        assert_eq!(describe(7), "exit code 7");
        assert_eq!(describe(u32::MAX), "exit code -1");
        assert_eq!(
            describe(0xC000_0005),
            "exit code 0xC0000005 (access violation)"
        );
        assert_eq!(
            describe(0xC000_013A),
            "exit code 0xC000013A (Ctrl-C, or its console was closed)"
        );
        assert_eq!(
            describe(0x4001_0004),
            "exit code 0x40010004 (ended from outside)"
        );
        assert_eq!(describe(0xC000_0022), "exit code 0xC0000022");
    }
}
