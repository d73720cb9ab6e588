//! The Credential Manager of Windows.

#![allow(unsafe_code)] // the system's own interface

use crate::keyring::Entry;
use std::{io, ptr, slice};
use windows_sys::Win32::{
    Foundation::ERROR_NOT_FOUND,
    Security::Credentials::{CRED_TYPE_GENERIC, CREDENTIALW, CredFree, CredReadW},
};

/// What the Credential Manager has for an entry, under any of the names that it may have there.
pub(super) fn of_keyring(entry: &Entry) -> Result<String, String> {
    let targets = entry.targets();
    let last = targets.len() - 1;
    for (index, target) in targets.iter().enumerate() {
        let found = read(target).map_err(|error| error.to_string())?;
        if let Some((user, secret)) = found
            // One that is only named after the service may be anybody's.
            && (index < last || user == entry.name)
        {
            return text(&secret).ok_or_else(|| "it is not text".to_owned());
        }
    }
    Err("it is not there".to_owned())
}

/// The user and the secret of a generic credential, if there is one.
fn read(target: &str) -> io::Result<Option<(String, Vec<u8>)>> {
    let wide: Vec<u16> = target.encode_utf16().chain([0]).collect();
    let mut found: *mut CREDENTIALW = ptr::null_mut();
    // SAFETY: the name ends in a zero, and `found` is a place for one pointer.
    let done = unsafe { CredReadW(wide.as_ptr(), CRED_TYPE_GENERIC, 0, &mut found) };
    if done == 0 || found.is_null() {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(code) if code.cast_unsigned() == ERROR_NOT_FOUND => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: the system has given us one whole credential, which is ours until it is freed.
    let credential = unsafe { &*found };
    let len = credential.CredentialBlobSize as usize;
    let secret = if len == 0 || credential.CredentialBlob.is_null() {
        Vec::new()
    } else {
        // SAFETY: the credential says how many bytes there are.
        unsafe { slice::from_raw_parts(credential.CredentialBlob, len) }.to_vec()
    };
    let user = of_wide(credential.UserName);
    // SAFETY: it came from the system, and nothing refers to it any more.
    unsafe { CredFree(found.cast()) };
    Ok(Some((user, secret)))
}

fn of_wide(text: *const u16) -> String {
    if text.is_null() {
        return String::new();
    }
    let mut len = 0;
    // SAFETY: texts of the system end in a zero.
    while unsafe { *text.add(len) } != 0 {
        len += 1;
    }
    // SAFETY: so many were there before the zero.
    String::from_utf16_lossy(unsafe { slice::from_raw_parts(text, len) })
}

/// Most write UTF-16, some UTF-8. No secret has a zero in it, and half of what is ASCII in UTF-16 is zeroes.
fn text(secret: &[u8]) -> Option<String> {
    if secret.contains(&0) {
        let pairs = secret.chunks_exact(2);
        let units: Vec<u16> = pairs
            .map(|two| u16::from_le_bytes([two[0], two[1]]))
            .collect();
        return String::from_utf16(&units).ok();
    }
    String::from_utf8(secret.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use windows_sys::Win32::Security::Credentials::{
        CRED_PERSIST_SESSION, CredDeleteW, CredWriteW,
    };

    fn wide(text: &str) -> Vec<u16> {
        text.encode_utf16().chain([0]).collect()
    }

    fn keep(target: &str, user: &str, secret: &mut [u8]) {
        let (mut target, mut user) = (wide(target), wide(user));
        // SAFETY: all zeroes is a good credential, and what is set lives until it has been written.
        let written = unsafe {
            let mut credential: CREDENTIALW = std::mem::zeroed();
            credential.Type = CRED_TYPE_GENERIC;
            credential.TargetName = target.as_mut_ptr();
            credential.UserName = user.as_mut_ptr();
            credential.CredentialBlob = secret.as_mut_ptr();
            credential.CredentialBlobSize = u32::try_from(secret.len()).unwrap();
            credential.Persist = CRED_PERSIST_SESSION;
            CredWriteW(&credential, 0)
        };
        assert_ne!(written, 0, "{}", io::Error::last_os_error());
    }

    #[test]
    fn what_was_kept_is_found_in_either_writing() {
        let service = format!("nexus-test-{}", std::process::id());
        let entry = Entry {
            service: service.clone(),
            name: "me".into(),
        };
        assert_eq!(of_keyring(&entry), Err("it is not there".into()));
        let utf16: Vec<u8> = "s3cret é"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        for (target, user, secret, expected) in [
            (service.clone(), "somebody", b"theirs".to_vec(), None),
            (service.clone(), "me", b"mine".to_vec(), Some("mine")),
            (
                format!("me.{service}"),
                "me",
                utf16.clone(),
                Some("s3cret é"),
            ),
            (
                format!("{service}/me"),
                "x",
                b"plain".to_vec(),
                Some("plain"),
            ),
        ] {
            keep(&target, user, &mut secret.clone());
            let found = of_keyring(&entry).ok();
            assert_eq!(found.as_deref(), expected, "{target}");
        }
        for target in entry.targets() {
            // SAFETY: the name ends in a zero.
            unsafe { CredDeleteW(wide(&target).as_ptr(), CRED_TYPE_GENERIC, 0) };
        }
    }
}
