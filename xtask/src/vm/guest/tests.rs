use std::process::Command;

use super::*;

/// Output and errors of a guest end up in one file where both are sent there.
#[test]
fn two_that_are_relayed_into_one_file_lose_nothing() {
    let path = std::env::temp_dir().join(format!("xtask-relay-{}", std::process::id()));
    let file = File::create(&path).expect("a file");
    let (ended, ends) = mpsc::channel();
    let mut pipes = ["a", "b"].map(|name| {
        let (from, to) = io::pipe().expect("a pipe");
        relay(from, file.try_clone().expect("a descriptor"), ended.clone());
        (name, to)
    });
    let mut expected = String::new();
    for round in 0..10 {
        for (name, to) in &mut pipes {
            let line = format!("{name} {round}\n");
            to.write_all(line.as_bytes()).expect("the relay reads");
            expected += &line;
            let begin = Instant::now();
            while fs::read_to_string(&path).expect("text").len() < expected.len() {
                assert!(
                    begin.elapsed() < Duration::from_secs(10),
                    "{line} was overwritten, or never written"
                );
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
    drop(pipes);
    for _ in 0..2 {
        ends.recv().expect("a relay").expect("it could write");
    }
    assert_eq!(fs::read_to_string(&path).expect("text"), expected);
    fs::remove_file(&path).expect("nobody else uses it");
}

fn guest(command: &[&str]) -> Guest {
    Guest {
        cpus: 2,
        memory_mib: 512,
        timeout: Duration::from_secs(1),
        writable: vec!["/a folder,with a comma".into()],
        variables: vec![("RING_WORDS".into(), "it's $HOME".into())],
        console: None,
        bare: false,
        folder: "/".into(),
        command: command.iter().map(OsString::from).collect(),
    }
}

/// What a shell makes of a guest's script.
fn run(guest: &Guest) -> (String, Option<i32>) {
    let script = OsString::from_vec(guest.script());
    let output = Command::new("sh").arg("-c").arg(script).output().expect("there is a shell");
    (String::from_utf8(output.stdout).expect("text"), output.status.code())
}

#[test]
fn a_command_arrives_as_it_was_given() {
    let words = ["two words", "it's", "$HOME", "`id`", "\\", "\"", "", "*", "a\nb"];
    let (output, status) = run(&guest(&[&["printf", "<%s>"], &words[..]].concat()));
    let expected: String = words.iter().map(|word| format!("<{word}>")).collect();
    assert_eq!((output, status), (expected, Some(0)));
}

#[test]
fn variables_and_the_status_arrive() {
    let guest = guest(&["sh", "-c", "echo \"$RING_WORDS\" in \"$PWD\"; exit 7"]);
    assert_eq!(run(&guest), ("it's $HOME in /\n".into(), Some(7)));
}

#[test]
fn a_folder_that_the_guest_does_not_have_is_an_error() {
    let guest = Guest { folder: "/no such folder".into(), ..guest(&["echo", "unheard"]) };
    assert_eq!(run(&guest), (String::new(), Some(126)));
}

#[test]
fn only_some_variables_are_passed_on() {
    let asked = ["LANG".into()];
    let passed = |name: &str| is_passed(OsStr::new(name), &asked);
    assert!(["PATH", "HOME", "RING_VERBS_DEVICE", "RUST_BACKTRACE", "LANG"].into_iter().all(passed));
    assert!(!["TOKEN", "SHELL", "MY_RING_", "LANGUAGE"].into_iter().any(passed));
}

#[test]
fn folders_inside_others_are_shared_once() {
    let folders = ["/home/ring/target", "/home/ring", "/home/ring-target", "/home/ring"].map(PathBuf::from);
    assert_eq!(outermost(folders.to_vec()), ["/home/ring", "/home/ring-target"].map(PathBuf::from));
}

#[test]
fn a_comma_does_not_end_a_path() {
    let share = option("local,path=", Path::new("/a,b"), ",mount_tag=rw0");
    assert_eq!(share, "local,path=/a,,b,mount_tag=rw0");
}

#[test]
fn the_end_of_a_console_is_its_last_twenty_lines() {
    let text: String = (0..30).map(|line| format!("{line}\n")).collect();
    let end = tail(text.as_bytes());
    assert!(end.starts_with("10\n") && end.ends_with("\n29"), "{end}");
    assert_eq!(tail(b"one\n"), "one");
}

#[test]
fn what_a_job_leaves_is_a_status() {
    let jobs = std::env::temp_dir().join(format!("xtask-jobs-{}", std::process::id()));
    let job = Job::new(&jobs).expect("a job");
    assert_eq!(job.status(), None);
    fs::write(job.file("status"), "7\n").expect("a status");
    assert_eq!(job.status(), Some(7));
    let folder = job.0.clone();
    drop(job);
    assert!(!folder.exists());
    fs::remove_dir(&jobs).expect("nothing else is there");
}
