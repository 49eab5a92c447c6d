//! Where the limits of this process' control groups lie.
//!
//! `/proc/self/cgroup` has the process' group in each hierarchy, as a path from that hierarchy's root, and
//! `/proc/self/mountinfo` has where which part of a hierarchy is mounted. Of
//!
//! ```text
//! 4:memory:/docker/c0ffee                                                                    in cgroup
//! 35 31 0:32 /docker/c0ffee /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory               in mountinfo
//! ```
//!
//! the first says that the group is `/docker/c0ffee`, the second that just this part is seen at
//! `/sys/fs/cgroup/memory`: so the group's files are right there. A limit of a group also binds the groups in it, so all
//! levels up to the mount are of interest.

use std::path::{Component, Path, PathBuf};

use super::texts::Texts;

/// More levels than anybody nests.
const MOST_LEVELS: usize = 32;

/// Folders of the process' groups, each with those above it; empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Groups {
    /// Where processor time is limited.
    pub(super) cpu: Vec<PathBuf>,
    /// Where memory is limited.
    pub(super) memory: Vec<PathBuf>,
    /// Where pressure is told, which only the second version of cgroups does.
    pub(super) unified: Vec<PathBuf>,
}

impl Groups {
    /// Those of this process.
    pub(super) fn of(texts: &impl Texts) -> Self {
        let read = |path: &str| texts.text(Path::new(path)).unwrap_or_default();
        let (groups, mounts) = (read("/proc/self/cgroup"), read("/proc/self/mountinfo"));
        let unified = levels(&groups, &mounts, None);
        let limiting = |controller: &str| {
            let own = levels(&groups, &mounts, Some(controller));
            if own.is_empty() { unified.clone() } else { own }
        };
        Self { cpu: limiting("cpu"), memory: limiting("memory"), unified }
    }
}

/// The folder of the group and those above it, in the hierarchy of a controller or in the unified one.
fn levels(groups: &str, mounts: &str, controller: Option<&str>) -> Vec<PathBuf> {
    let Some(group) = groups.lines().find_map(|line| group(line, controller)) else { return Vec::new() };
    let Some(mount) = mounts.lines().find_map(|line| Mount::read(line, controller)) else {
        return Vec::new();
    };
    let below = Path::new(group).strip_prefix(mount.root).unwrap_or(Path::new(""));
    // A group outside of what this namespace shows begins with `..`.
    let is_shown = below.components().all(|part| matches!(part, Component::Normal(_)));
    let point = PathBuf::from(unescaped(mount.point));
    let mut own = point.clone();
    if is_shown {
        own.extend(below);
    }
    let levels = own.ancestors().take(MOST_LEVELS).take_while(|level| level.starts_with(&point));
    levels.map(Path::to_owned).collect()
}

/// The path in `4:cpu,cpuacct:/docker/c0ffee`, or in `0::/user.slice` of the unified hierarchy.
fn group<'a>(line: &'a str, controller: Option<&str>) -> Option<&'a str> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let is_meant = match controller {
        Some(controller) => controllers.split(',').any(|known| known == controller),
        None => number == "0" && controllers.is_empty(),
    };
    is_meant.then_some(path)
}

struct Mount<'a> {
    /// The part of the hierarchy that is shown.
    root: &'a str,
    /// Where.
    point: &'a str,
}

impl<'a> Mount<'a> {
    fn read(line: &'a str, controller: Option<&str>) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let (name, options) = (kind.next()?, kind.nth(1)?);
        let is_meant = match controller {
            Some(controller) => name == "cgroup" && options.split(',').any(|known| known == controller),
            None => name == "cgroup2",
        };
        is_meant.then_some(Self { root, point })
    }
}

/// A path as it is: the list of mounts writes a space as `\040`.
fn unescaped(path: &str) -> String {
    path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::super::texts::tests::Written;
    use super::*;

    fn paths(levels: &[PathBuf]) -> Vec<&str> {
        levels.iter().map(|level| level.to_str().unwrap()).collect()
    }

    fn of(groups: &'static str, mounts: &'static str) -> Groups {
        Groups::of(&Written::new([("/proc/self/cgroup", groups), ("/proc/self/mountinfo", mounts)]))
    }

    #[test]
    fn a_service_of_systemd_is_found_with_the_slices_above_it() {
        let groups = of(
            "0::/system.slice/tidegate.service\n",
            "29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        let expected =
            ["/sys/fs/cgroup/system.slice/tidegate.service", "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"];
        assert_eq!(paths(&groups.cpu), expected);
        assert_eq!((&groups.cpu, &groups.cpu), (&groups.memory, &groups.unified));
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_root() {
        let groups =
            of("0::/\n", "2094 2093 0:29 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n");
        assert_eq!(paths(&groups.memory), ["/sys/fs/cgroup"]);
        let moved = of("0::/../other\n", "2094 2093 0:29 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
        assert_eq!(paths(&moved.memory), ["/sys/fs/cgroup"]);
    }

    #[test]
    fn a_container_of_the_first_version_has_a_mount_for_each_controller() {
        let groups = of(
            "11:memory:/docker/c0ffee\n4:cpu,cpuacct:/docker/c0ffee\n1:name=systemd:/docker/c0ffee\n",
            "700 698 0:30 /docker/c0ffee /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
             701 698 0:35 /docker/c0ffee /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
        );
        assert_eq!(paths(&groups.cpu), ["/sys/fs/cgroup/cpu,cpuacct"]);
        assert_eq!(paths(&groups.memory), ["/sys/fs/cgroup/memory"]);
        assert!(groups.unified.is_empty());
    }

    #[test]
    fn both_versions_side_by_side_are_each_taken_for_what_it_has() {
        let groups = of(
            "4:memory:/jobs/7\n2:cpuacct:/\n1:cpu:/\n0::/\n",
            "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
             32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
             33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n\
             35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
        );
        assert_eq!(paths(&groups.cpu), ["/sys/fs/cgroup/cpu"]);
        let memory = ["/sys/fs/cgroup/memory/jobs/7", "/sys/fs/cgroup/memory/jobs", "/sys/fs/cgroup/memory"];
        assert_eq!(paths(&groups.memory), memory);
        assert_eq!(paths(&groups.unified), ["/sys/fs/cgroup/unified"]);
    }

    #[test]
    fn odd_texts_find_nothing() {
        for (groups, mounts) in [
            ("", ""),
            ("0::/a\n", ""),
            ("0:\n::\n:::::\n", "1 2 3\n - \n- cgroup2\n1 2 3 4 5 - cgroup2\n"),
            ("\u{fffd}0::/a", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ] {
            assert_eq!(of(groups, mounts), Groups::default(), "{groups:?} {mounts:?}");
        }
        let spaced = of("0::/a\n", "1 2 3 / /my\\040mounts/x rw - cgroup2 cgroup2 rw\n");
        assert_eq!(paths(&spaced.cpu), ["/my mounts/x/a", "/my mounts/x"]);
        let deep: &'static str = format!("0::{}\n", "/a".repeat(5000)).leak();
        assert_eq!(of(deep, "1 2 3 / /x rw - cgroup2 cgroup2 rw\n").cpu.len(), MOST_LEVELS);
    }
}
