use super::*;

/// Runs a script that hangs when it says nothing for two seconds.
fn run(name: &str, script: &str) -> Captured {
    let log = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
    let patience = Duration::from_secs(2);
    let runner = Runner { name: format!("step {name}"), log, begin: Instant::now(), patience };
    let captured = runner.capture(Command::new("sh").args(["-c", script])).expect("there is a shell");
    fs::remove_file(&runner.log).expect("the log is there");
    captured
}

/// Waits for the ends of the processes whose ids a line has, in vain for five seconds at most.
fn are_gone(line: &str) -> bool {
    let is_gone = |id: &str| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat"));
        // Whoever inherits an orphan may never ask how it ended.
        stat.map_or(true, |stat| stat.rsplit(") ").next().is_some_and(|state| state.starts_with('Z')))
    };
    let begin = Instant::now();
    let mut ids = line.split(' ').peekable();
    while let Some(id) = ids.peek() {
        assert!(id.parse::<u32>().is_ok(), "{line}");
        if is_gone(id) {
            ids.next();
        } else if begin.elapsed() > Duration::from_secs(5) {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

#[test]
fn what_hangs_is_ended_with_what_it_started() {
    let begin = Instant::now();
    let Captured { success, output } = run("hangs", "sleep 1000 & echo $$ $!; wait");
    assert!(!success && begin.elapsed() < Duration::from_secs(100));
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines[1], "step hangs: nothing was said for 2 s, so it was ended");
    assert!(lines[2].contains("signal"), "{output}");
    assert!(are_gone(lines[0]), "{output}");
}

#[test]
fn nothing_outlives_a_command_that_ends() {
    let Captured { success, output } = run("ends", "sleep 1000 & echo $!");
    assert!(success && are_gone(output.trim_end()), "{output}");
}

#[test]
fn what_goes_on_speaking_goes_on() {
    let Captured { success, output } = run("speaks", "for n in 1 2 3 4 5 6; do sleep 0.5; echo $n; done");
    assert!(success && output == "1\n2\n3\n4\n5\n6\n", "{output}");
}

#[test]
fn each_job_is_done_once_and_none_is_begun_after_an_error() {
    let jobs: Vec<u32> = (0..100).collect();
    let mut squares = Vec::new();
    let collect = |&job: &u32, square| {
        assert_eq!(square, job * job);
        squares.push(square);
        Ok(())
    };
    at_once(&jobs, |job| job * job, collect).unwrap();
    squares.sort_unstable();
    assert_eq!(squares, jobs.iter().map(|job| job * job).collect::<Vec<_>>());

    let begun = Mutex::new(0);
    let slow = |_: &u32| {
        *begun.lock().unwrap() += 1;
        thread::sleep(Duration::from_millis(10));
    };
    assert!(at_once(&jobs, slow, |_, ()| anyhow::bail!("enough")).is_err());
    assert!(*begun.lock().unwrap() < jobs.len());
}
