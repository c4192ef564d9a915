//! What the program says of itself: help, man pages, completions.

use std::process::Command;

use super::program::finish;

#[test]
fn help_of_a_command_comes_by_either_way() {
    let (code, out, err) = finish(&["help", "run"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("Usage: zklock run"), "{out}");
    assert_eq!(finish(&["run", "--help"]).1, out);
}

#[test]
fn man_pages_have_the_sections_of_the_help() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(finish(&["generate", directory.path().to_str().unwrap()]).0, Some(0));
    for command in ["run", "who", "doctor", "serve"] {
        let file = directory.path().join(format!("man/zklock-{command}.1"));
        let page = std::fs::read_to_string(file).unwrap();
        for section in [".SH SERVERS", ".SH EXIT STATUS", ".SH EXAMPLES"] {
            assert!(page.lines().any(|line| line == section), "{command} {section}: {page}");
        }
        assert!(!page.contains(".SH EXTRA"), "{command}");
        assert!(page.contains("The certificate of this client"), "{command}: {page}");
    }
}

#[test]
fn bash_completes_the_command_behind_the_path_and_its_arguments() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(finish(&["generate", directory.path().to_str().unwrap()]).0, Some(0));
    std::fs::write(directory.path().join("a-file"), b"").unwrap();
    let script = directory.path().join("completions/zklock.bash");
    let complete = |line: &str| {
        let script = format!(
            "source {}; cd {}; COMP_WORDS=(zklock {line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _zklock_with_commands zklock \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display(),
            directory.path().display()
        );
        let out = Command::new("bash").args(["-c", &script]).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let has = |line: &str, word: &str| complete(line).lines().any(|found| found == word);
    assert!(has("run /locks/a tru", "true"));
    assert!(has("--hosts a:1 run --wait 5s /locks/a -- tru", "true"));
    assert!(has("run /locks/a cat a-f", "a-file"));
    assert!(has("run --wa", "--wait") && has("run /locks/a --wa", "--wait"));
    assert!(has("wh", "who") && !has("who tru", "true"));
}

#[test]
fn fish_completes_the_command_behind_the_path_and_its_arguments() {
    if let Err(error) = Command::new("fish").arg("--version").output() {
        println!("skipped: fish: {error}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(finish(&["generate", directory.path().to_str().unwrap()]).0, Some(0));
    std::fs::write(directory.path().join("a-file"), b"").unwrap();
    let complete = |line: &str| {
        let script = format!("source completions/zklock.fish; complete -C 'zklock {line}'");
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", &script]).current_dir(directory.path());
        String::from_utf8(fish.output().unwrap().stdout).unwrap()
    };
    let has = |line: &str, word: &str| {
        complete(line).lines().any(|found| found.split('\t').next() == Some(word))
    };
    assert!(has("run /locks/a tru", "true"));
    assert!(has("--hosts a:1 run --wait 5s /locks/a -- tru", "true"));
    assert!(has("run /locks/a cat a-f", "a-file"));
    assert!(has("run --wa", "--wait") && !has("run tru", "true"));
}
