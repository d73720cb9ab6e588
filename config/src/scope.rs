//! Who sees a server: everybody, or those who work in the folder of its project. Pure.

use std::path::{Path, PathBuf};

/// Who sees a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Those who work in this folder, or in one inside it; everybody, where there is none.
    pub folder: Option<PathBuf>,
    /// But not those who work in one of these: the projects there have another of that name, or want none.
    pub except: Vec<PathBuf>,
}

impl Scope {
    /// Those of one project; everybody, where there is none.
    pub fn of(folder: Option<&Path>) -> Self {
        Self {
            folder: folder.map(Path::to_owned),
            except: Vec::new(),
        }
    }

    /// Whether those who work in `folder` see it.
    pub fn has(&self, folder: Option<&Path>) -> bool {
        let is_in = |outer: &PathBuf| folder.is_some_and(|folder| folder.starts_with(outer));
        self.reaches(folder) && !self.except.iter().any(is_in)
    }

    /// Whether those who work in `folder` would see it, if their project had no other.
    pub fn reaches(&self, folder: Option<&Path>) -> bool {
        let is_in = |outer: &PathBuf| folder.is_some_and(|folder| folder.starts_with(outer));
        self.folder.as_ref().is_none_or(is_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_for_those_who_work_in_it() {
        let app = Scope::of(Some(Path::new("/work/app")));
        let sees = |scope: &Scope, folder: &str| scope.has(Some(Path::new(folder)));
        assert!(sees(&app, "/work/app") && sees(&app, "/work/app/src"));
        assert!(!sees(&app, "/work/apple") && !sees(&app, "/work") && !app.has(None));
        let mut all = Scope::default();
        assert!(sees(&all, "/anywhere") && all.has(None));
        all.except.push("/work/app".into());
        assert!(!sees(&all, "/work/app/src") && sees(&all, "/work") && all.has(None));
    }
}
