use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;

fn rules(list: &[(Decision, &str)]) -> Rules {
    let mut rules = Rules::default();
    for (decision, rule) in list {
        rules.add(*decision, rule).unwrap();
    }
    rules
}

fn allow(list: &[&str]) -> Rules {
    rules(&list.iter().map(|rule| (Decision::Allow, *rule)).collect::<Vec<_>>())
}

fn deny(list: &[&str]) -> Rules {
    rules(&list.iter().map(|rule| (Decision::Deny, *rule)).collect::<Vec<_>>())
}

fn question(tool: &str, class: Class, subject: Subject, dir: &Path) -> Question {
    Question { tool: tool.to_owned(), named: true, class, server: None, subject, dir: dir.to_owned() }
}

fn shell(command: &str) -> Question {
    question("run_shell_command", Class::Command, Subject::Command(command.to_owned()), Path::new("/srv/p"))
}

fn edit(path: impl Into<PathBuf>, dir: &Path) -> Question {
    question("write_file", Class::FileWrite, Subject::Paths(vec![path.into()]), dir)
}

fn mcp(name: &str) -> Question {
    question(name, Class::Mcp, Subject::Arguments(serde_json::json!({})), Path::new("/srv/p"))
}

fn decided(rules: &Rules, question: &Question) -> Option<Decision> {
    rules.decide(question).map(|ruling| ruling.decision)
}

/// The blocks of the page that have rules: these, an empty line, and what comes of what.
#[test]
fn the_page_says_what_happens() {
    let page = include_str!("../../../alhena/src/concepts/permissions.md");
    let dir = tempfile::tempdir().unwrap();
    let mut tried = 0;
    for block in page.split("```text\n").skip(1).filter_map(|block| block.split("```").next()) {
        let (given, asked) = block.split_once("\n\n").unwrap();
        let mut rules = Rules::default();
        for line in given.lines() {
            let (word, rule) = line.split_once(' ').unwrap();
            let decision = Decision::ALL.into_iter().find(|decision| decision.name() == word).unwrap();
            rules.add(decision, rule).unwrap();
        }
        for line in asked.lines() {
            let (start, expected) = line.rsplit_once(' ').unwrap();
            let (kind, what) = start.trim_end().split_once(' ').unwrap();
            let question = match kind {
                "shell" => shell(what),
                "edit" => edit(what, dir.path()),
                "mcp" => mcp(what),
                other => panic!("{other}"),
            };
            let ruling = rules.decide(&question).map_or("-", |ruling| ruling.decision.name());
            assert_eq!(ruling, expected, "{line}");
            tried += 1;
        }
    }
    assert!(tried > 35, "{tried}");
}

#[test]
fn no_hostile_command_passes_for_the_one_that_is_allowed() {
    let rules = allow(&["shell(git *)", "shell(echo *)", "shell(printf *)"]);
    let hostile = [
        "",
        " ",
        "git status; rm -rf x",
        "git status;rm -rf x",
        "git status && rm x",
        "git status&&rm x",
        "git status || rm x",
        "git status | sh",
        "git status |& sh",
        "git status & rm x",
        "git status &\nrm x",
        "git status\nrm x",
        "git status\r\nrm x",
        "git status \\\n; rm x",
        "git $(rm x)",
        "git `rm x`",
        "git \"$(rm x)\"",
        "git \"`rm x`\"",
        "git ${x:-$(rm x)}",
        "git ${x@P}",
        "git $((a[$(rm x)]))",
        "git $[1]",
        "git $'a\\'; rm x'",
        "git $\"x\"",
        "git <(rm x)",
        "git >(rm x)",
        "git > x",
        "git >> x",
        "git >| x",
        "git 2> x",
        "git &> x",
        "git >& x",
        "git <> x",
        "git < /etc/shadow",
        "git <<EOF\n$(rm x)\nEOF",
        "git <<< \"$(rm x)\"",
        "(git status)",
        "(git status) && rm x",
        "{ git status; rm x; }",
        "git status } ; rm x; {",
        "git() { rm x; }; git",
        "git () (rm x)",
        "function git { rm x; }",
        "PATH=/tmp git status",
        "GIT_SSH_COMMAND='sh -c x' git fetch",
        "PATH=/tmp; git status",
        "a=(x) git status",
        "a[0]=1 git status",
        "env git status",
        "command git status",
        "exec git status",
        "sudo git status",
        "! git status",
        "time git status",
        "if git status; then rm x; fi",
        "if git status; then git log; fi",
        "for f in *; do git add $f; done",
        "while git pull; do :; done",
        "case x in x) git status;; esac",
        "coproc git status",
        "alias git=rm; git x",
        "./git status",
        "/tmp/git status",
        "~/git status",
        "gitx status",
        "git-evil",
        "Git status",
        "\"git status\"",
        "'git '",
        "$GIT status",
        "${GIT} status",
        "g* status",
        "{git,status}",
        "{rm,-rf,x} git",
        "git status # and\nrm x",
        "git status #",
        "git 'unclosed",
        "git \"unclosed",
        "git \\",
        "git \u{a0}status",
        "git\u{3000}status",
        "git \u{202e}sutats",
        "git \u{0}x",
        "git \u{1b}[2K x",
        "git status;; rm",
        "git status &&",
        "git status ||\n",
        "git status |",
        "&& git status",
        "; git status",
        "git status; ; git log",
        "git status )",
        "git status (",
        "git @(a|b)",
        "[[ $(rm x) ]] && git status",
        "git status | xargs rm",
        "printf -v 'a[$(rm x)]' y",
        "printf -v 'a[`rm x`]' y",
        "printf -v a[\\$(rm) y",
        "eval git status",
        ". git",
        "source git",
        "trap 'rm x' EXIT; git status",
        "git status && cd / && git clean",
        "\\\nrm x",
        "git=1",
        "git\\\n-evil x",
    ];
    for command in hostile {
        assert_eq!(decided(&rules, &shell(command)), None, "{command:?}");
    }
    let long = format!("git {}", "x ".repeat(40_000));
    assert_eq!(decided(&rules, &shell(&long)), None);
    let deep = format!("git {}{}", "$(".repeat(5000), ")".repeat(5000));
    assert_eq!(decided(&rules, &shell(&deep)), None);
}

#[test]
fn ordinary_commands_pass() {
    let rules = allow(&["shell(git *)", "shell(echo *)", "shell(CI=1 npm test)", "shell(npm run test*)"]);
    let harmless = [
        "git",
        "git status",
        "  git   status  ",
        "git commit -m 'a; b && c | d > e'",
        "git commit -m \"a (b) c\"",
        "git commit -m \"costs \\$5\"",
        "git log --format='%h %s' -- src/*.rs",
        "git diff HEAD~1",
        "git log $BRANCH \"${BRANCH}\"",
        "git status && echo done",
        "git status; git log\ngit diff",
        "git log | git shortlog",
        "git fetch >/dev/null 2>&1",
        "git fetch &>/dev/null",
        "git \\\n  status",
        "\"git\" status",
        "g\\it status",
        "echo 'héllo wörld' 日本",
        "echo a#b",
        "CI=1 npm test",
        "npm run test:unit",
    ];
    for command in harmless {
        assert_eq!(decided(&rules, &shell(command)), Some(Decision::Allow), "{command:?}");
    }
    assert_eq!(decided(&rules, &shell("npm run tests && rm x")), None);
    assert_eq!(decided(&rules, &shell("npm run dev")), None);
    assert_eq!(decided(&rules, &shell("npm run test a")), None);
}

#[test]
fn a_denied_command_is_found_wherever_it_hides() {
    let rules = deny(&["shell(rm *)", "shell(git push * --force)"]);
    let denied = [
        "rm x",
        "rm",
        "RM x",
        "\\rm x",
        "r''m x",
        "\"rm\" x",
        "/usr/bin/rm x",
        "../bin/rm x",
        "ls;rm x",
        "ls\nrm x",
        "ls | rm x",
        "ls & rm x",
        "A=1 rm x",
        "A=1 B+=2 rm x",
        "(cd y; rm x)",
        "{ rm x; }",
        "! rm x",
        "if true; then rm x; fi",
        "for f in *; do rm $f; done",
        "while rm x; do :; done",
        "f() { rm x; }",
        "case x in x) rm x;; esac",
        "echo $(rm x)",
        "echo \"$(ls; rm x)\"",
        "echo `rm x`",
        "echo ${x:-`rm x`}",
        "cat <(rm x)",
        "cat <<EOF\n$(rm x)\nEOF",
        "env A=1 rm x",
        "sudo -u root rm x",
        "timeout 5 rm x",
        "xargs rm < list",
        "find . -exec rm {} +",
        "sh -c 'rm x'",
        "bash -lc \"ls && rm x\"",
        "sh -c 'sh -c \"rm x\"'",
        "eval 'rm x'",
        "eval rm x",
        "$CMD x",
        "${CMD} x",
        "$(which rm) x",
        "r? x",
        "{rm,x}",
        "rm\\\n x",
        "echo 'unclosed",
        "echo x # rm\nrm x",
        "echo \u{202e}x",
        "git push origin main --force",
        "git push $ARGS",
        "git $ARGS",
    ];
    for command in denied {
        assert_eq!(decided(&rules, &shell(command)), Some(Decision::Deny), "{command:?}");
    }
    let others = [
        "ls",
        "git rm x",
        "echo rm x",
        "git push origin main",
        "echo $HOME",
        "ls *.rs > out",
        "grep -r rm .",
        "echo $(date)",
        "(ls)",
    ];
    for command in others {
        assert_eq!(decided(&rules, &shell(command)), None, "{command:?}");
    }
}

#[test]
fn what_is_run_and_cannot_be_read_may_be_what_is_denied() {
    let denies = deny(&["shell(rm *)"]);
    let asks = rules(&[(Decision::Ask, "shell(rm *)"), (Decision::Allow, "shell(echo *)")]);
    let unread = [
        "bash <<< 'rm x'",
        "bash <<< \"$X\"",
        "echo rm x | bash",
        "echo rm x | sh -s",
        "echo rm x | /usr/bin/dash -",
        "bash < script",
        "bash script.sh",
        "bash script.sh -c ls",
        "bash -x script.sh",
        "bash --rcfile x -c ls",
        "bash -c bash",
        "sh -c 'sh -s'",
        "zsh x; ls",
        ". ./x",
        "if . ./x; then ls; fi",
        "command . x",
        "source x",
        "sudo bash x",
        "sudo -s",
        "echo rm x | sudo -i",
        "echo rm x | su",
        "su - user",
        "echo rm x | chroot /x",
        "env bash",
        "find . -exec sh {} \\;",
        "find . | xargs sh",
        "echo rm x | xargs env",
        "echo rm | xargs -I% % x",
        "echo rm | xargs -I {} {} x",
        "echo rm x | parallel",
        "echo rm x | at now",
        "crontab x",
        "run-parts x",
        "eval \"$X\"",
        "eval $X",
        "X=rm; $X y",
        "X=rm && \"$X\" y",
        "BASH_ENV=x bash -c ls",
        "export BASH_ENV=x; bash -c ls",
        "python -c 'import os; os.system(\"rm x\")'",
        "python3.12 -c x",
        "echo x | python3",
        "echo x | python3 -",
        "perl -e 'unlink x'",
        "perl -pe s/a/b/",
        "node --eval x",
        "node -p x",
        "ruby -ne x",
        "deno eval x",
        "php -r x",
        "awk 'BEGIN { system(\"rm x\") }'",
        "awk '{ print | \"sh\" }' x",
        "awk \"$X\" y",
        "printf -v 'a[$(rm x)]' y",
        "[[ -v 'a[$(rm x)]' ]]",
        "test -v 'a[`rm x`]'",
        "let 'a[$(rm x)]'",
        "X='a[$(rm x)]'",
    ];
    let passed: Vec<_> =
        unread.iter().filter(|command| decided(&denies, &shell(command)) != Some(Decision::Deny)).collect();
    assert_eq!(passed, Vec::<&&str>::new());
    let not_asked: Vec<_> =
        unread.iter().filter(|command| decided(&asks, &shell(command)) != Some(Decision::Ask)).collect();
    assert_eq!(not_asked, Vec::<&&str>::new());
    let others = [
        "bash -c ls",
        "bash -lc 'ls -l'",
        "bash --version",
        "python script.py -c x",
        "python3 -m pytest -e",
        "node build.js",
        "perl script.pl",
        "awk '{ print $1 }' x",
        "awk -F: '{ print $1 }' x",
        "find . | xargs grep x",
        "sudo ls",
        "echo '$(rm x)'",
        "grep '`' x",
        "[[ $X == y ]]",
        "printf '%s' \"$X\"",
        "docker rm x",
        "npm rm x",
        "git rm x",
        "X=1 ls",
    ];
    let denied: Vec<_> =
        others.iter().filter(|command| decided(&denies, &shell(command)).is_some()).collect();
    assert_eq!(denied, Vec::<&&str>::new());
}

#[test]
fn a_denied_command_is_found_behind_every_program_that_runs_it() {
    let rules = deny(&["shell(rm *)"]);
    let denied = [
        "bash -c 'ls; rm x'",
        "env -S 'rm x'",
        "env -S'rm x'",
        "env --split-string='rm x'",
        "busybox rm x",
        "command rm x",
        "command -p rm x",
        "exec -a x rm y",
        "nohup rm x &",
        "timeout 5 rm x",
        "setsid -w rm x",
        "sudo -n -u root rm x",
        "doas rm x",
        "find . -name x -exec rm {} +",
        "fd -x rm",
        "ls | xargs -0 -n 1 rm -f",
        "ls | xargs -I{} rm {}",
        "ls | parallel rm",
        "alias x=rm",
        "shopt -s expand_aliases\nalias x='rm -f'\nx y",
        "hash -p /bin/rm ls; ls x",
        "function f { rm x; }; f",
        "compgen -C 'rm x'",
        "GIT_PAGER='rm x' git log",
        "docker exec -it c rm x",
        "docker run --rm image rm x",
        "npm exec -- rm x",
        "uv run rm x",
        "git bisect run rm x",
        "git submodule foreach 'rm x'",
        "git rebase -x 'rm x' main",
        "git rebase --exec='rm x' main",
        "tmux new-session -d 'rm x'",
        "ssh host rm x",
        "su -c 'rm x'",
        "su root -c 'rm x'",
    ];
    for command in denied {
        assert_eq!(decided(&rules, &shell(command)), Some(Decision::Deny), "{command:?}");
    }
}

#[test]
fn the_order_of_rules_does_not_matter() {
    let all =
        [(Decision::Allow, "shell"), (Decision::Ask, "shell(git *)"), (Decision::Deny, "shell(git push *)")];
    let expected = [("ls", Decision::Allow), ("git log", Decision::Ask), ("git push x", Decision::Deny)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let rules = rules(&order.map(|at| all[at]));
        for (command, decision) in expected {
            assert_eq!(decided(&rules, &shell(command)), Some(decision), "{order:?} {command}");
        }
    }
}

#[test]
fn a_ruling_says_which_rule_and_why_it_may_apply() {
    let rules = deny(&["shell(rm *)"]);
    let said = |command: &str| rules.decide(&shell(command)).unwrap().to_string();
    assert_eq!(said("rm x"), "denied by the rule shell(rm *)");
    assert_eq!(
        said("echo `x`"),
        "denied by the rule shell(rm *), which may apply: the command has a backtick"
    );
    assert_eq!(
        said("ls | sudo bash -x"),
        "denied by the rule shell(rm *), which may apply: the command has a shell that reads its commands from a file or its input"
    );
}

#[test]
fn links_do_not_lead_out_of_what_is_allowed() {
    let top = tempfile::tempdir().unwrap();
    let dir = top.path().join("session");
    let outside = top.path().join("outside");
    fs::create_dir_all(dir.join("src/inner")).unwrap();
    fs::create_dir_all(dir.join("secrets")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("old.txt"), "x").unwrap();
    let link = |to: &Path, at: &str| std::os::unix::fs::symlink(to, dir.join(at)).unwrap();
    link(&outside, "src/out");
    link(&outside.join("new.txt"), "src/dangling.txt");
    link(&outside.join("old.txt"), "src/old.txt");
    link(Path::new("loop"), "src/loop");
    link(Path::new("../secrets"), "src/s");
    link(&dir, "src/self");
    let rules = rules(&[(Decision::Allow, "edit(src/**)"), (Decision::Deny, "edit(secrets/**)")]);
    let cases = [
        ("src/a.rs", Some(Decision::Allow)),
        ("src/inner/../a.rs", Some(Decision::Allow)),
        ("src/new/deep/a.rs", Some(Decision::Allow)),
        ("src/self/src/a.rs", Some(Decision::Allow)),
        ("src/self/a.rs", None),
        ("src/out/a.rs", None),
        ("src/out/../session/src/a.rs", Some(Decision::Allow)), // below src in either way
        ("src/out/../outside/x", None),
        ("src/dangling.txt", None),
        ("src/old.txt", None),
        ("src/old.txt/x", Some(Decision::Deny)), // no file is there: nobody knows
        ("src/../../outside/x", None),
        ("src/s/key", Some(Decision::Deny)),
        ("src/self/secrets/key", Some(Decision::Deny)),
        ("src/loop", Some(Decision::Deny)),
        ("secrets/../src/x", Some(Decision::Allow)),
    ];
    for (path, expected) in cases {
        assert_eq!(decided(&rules, &edit(path, &dir)), expected, "{path}");
    }
    // The same directory by another name.
    let other = top.path().join("other");
    std::os::unix::fs::symlink(&dir, &other).unwrap();
    assert_eq!(decided(&rules, &edit(dir.join("src/a.rs"), &other)), Some(Decision::Allow));
    assert_eq!(decided(&rules, &edit(other.join("src/a.rs"), &other)), Some(Decision::Allow));
    assert_eq!(decided(&rules, &edit(other.join("src/a.rs"), &dir)), None);
    // What is denied by one name is denied by all.
    let by_link = deny(&["edit(src/out/**)", &format!("edit({}/secrets/**)", other.display())]);
    assert_eq!(decided(&by_link, &edit(outside.join("x"), &dir)), Some(Decision::Deny));
    assert_eq!(decided(&by_link, &edit(dir.join("secrets/x"), &dir)), Some(Decision::Deny));
}

#[test]
fn a_question_without_what_a_rule_needs_is_not_allowed_and_is_denied() {
    let text =
        |class| question("write_file", class, Subject::Text("Writing to x".to_owned()), Path::new("/srv/p"));
    assert_eq!(decided(&allow(&["edit(src/**)"]), &text(Class::FileWrite)), None);
    assert_eq!(decided(&deny(&["edit(src/**)"]), &text(Class::FileWrite)), Some(Decision::Deny));
    assert_eq!(decided(&allow(&["edit"]), &text(Class::FileWrite)), Some(Decision::Allow));
    let none = question("write_file", Class::FileWrite, Subject::Paths(Vec::new()), Path::new("/srv/p"));
    assert_eq!(decided(&allow(&["edit(src/**)"]), &none), None);
    assert_eq!(decided(&deny(&["edit(src/**)"]), &none), Some(Decision::Deny));
}

#[test]
fn the_servers_name_decides_and_not_where_it_seems_to_end() {
    let rules = allow(&["mcp(db)", "mcp(mail/send_now)"]);
    assert_eq!(decided(&rules, &mcp("mcp_db_query")), Some(Decision::Allow));
    // It could be the tool `rows` of a server `db_admin`.
    assert_eq!(decided(&rules, &mcp("mcp_db_admin_rows")), None);
    let of = |server: &str, name: &str| Question { server: Some(server.to_owned()), ..mcp(name) };
    assert_eq!(decided(&rules, &of("db", "mcp_db_admin_rows")), Some(Decision::Allow));
    assert_eq!(decided(&rules, &of("db_admin", "mcp_db_admin_rows")), None);
    assert_eq!(decided(&rules, &of("db", "mcp_other_rows")), None);
    assert_eq!(decided(&rules, &mcp("mcp_mail_send_now")), Some(Decision::Allow));
    assert_eq!(decided(&rules, &mcp("mail__send_now")), Some(Decision::Allow));
    assert_eq!(decided(&deny(&["mcp(db)"]), &mcp("mcp_db_admin_rows")), Some(Decision::Deny));
    // A shell command is no tool of a server, whatever it is called.
    let odd = Question { class: Class::Command, ..mcp("mcp_db_query") };
    assert_eq!(decided(&rules, &odd), None);
}

#[test]
fn tools_have_the_names_of_gemini_and_of_claude() {
    let dir = Path::new("/srv/p");
    for rule in ["edit", "Edit", "write_file", "Write", "*", "write_file(a)", "Edit(a)"] {
        assert_eq!(decided(&allow(&[rule]), &edit("a", dir)), Some(Decision::Allow), "{rule}");
    }
    for rule in ["replace", "shell", "read", "mcp", "Bash"] {
        assert_eq!(decided(&allow(&[rule]), &edit("a", dir)), None, "{rule}");
    }
    for rule in ["Bash(ls *)", "run_shell_command(ls:*)", "ShellTool(ls *)", "shell(*)"] {
        assert_eq!(decided(&allow(&[rule]), &shell("ls -l")), Some(Decision::Allow), "{rule}");
    }
    let old = question("search_file_content", Class::FileRead, Subject::Text(String::new()), dir);
    assert_eq!(decided(&allow(&["grep_search"]), &old), Some(Decision::Allow));
}

#[test]
fn what_is_no_rule_is_said_so_with_a_hint() {
    let cases = [
        ("", r#""" is not the name of a tool"#),
        ("shell(git", r#""shell(git" has no closing parenthesis"#),
        ("shell()", r#""shell()" is no rule: there is nothing between the parentheses"#),
        ("shell( )", r#""shell( )" is no rule: there is nothing between the parentheses"#),
        (
            "shel(git)",
            r#""shel(git)" is no rule: Gemini CLI has no tool called "shel", unless an extension brings it"#,
        ),
        (
            "wirte_file",
            r#""wirte_file" is no rule: Gemini CLI has no tool called "wirte_file"; did you mean write_file?"#,
        ),
        ("shell(a; b)", r#""shell(a; b)" is no rule: it has several commands, and a rule is about one"#),
        (
            "shell(a > b)",
            r#""shell(a > b)" is no rule: it has a redirection to a file, and a rule is one plain command"#,
        ),
        ("shell(* *)", r#""shell(* *)" is no rule: it limits nothing"#),
        (
            "shell($X *)",
            r#""shell($X *)" is no rule: "$" means something to a shell; only * stands for anything, the rest goes in quotes"#,
        ),
        ("edit(../x)", r#""edit(../x)" is no rule: it leads up with ..; write the whole path"#),
        ("edit(~/x)", r#""edit(~/x)" is no rule: ~ is not replaced here; write the whole path"#),
        ("edit(a[)", r#""edit(a[)" is no rule: unclosed character class; missing ']'"#),
        ("fetch(example.com)", r#""fetch(example.com)" is no rule: fetch cannot be limited"#),
        ("mcp(a/b/c)", r#""mcp(a/b/c)" is no rule: "a/b/c" is not SERVER or SERVER/TOOL"#),
        ("mcp_a*_b", r#""mcp_a*_b" is no rule: it does not say where the server's name ends"#),
        ("write*", r#""write*" is no rule: a name is a whole name"#),
        ("*(x)", r#""*(x)" is no rule: * cannot be limited"#),
    ];
    for (rule, expected) in cases {
        let error = Rules::default().add(Decision::Allow, rule).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().is_some_and(|hint| hint.len() > 10), "{rule}");
    }
}

#[test]
fn a_file_of_rules_counts_as_a_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules.toml");
    let read = |text: &str| {
        fs::write(&path, text).unwrap();
        let mut rules = Rules::default();
        let result = rules.read(&path).map_err(|error| {
            assert!(rules.is_empty());
            error.to_string().replace(&*path.to_string_lossy(), "FILE")
        });
        result.map(|()| rules)
    };
    let rules = read("# mine\nallow = [\"shell(git *)\"]\ndeny = ['shell(git push *)']\n").unwrap();
    assert_eq!(decided(&rules, &shell("git log")), Some(Decision::Allow));
    assert_eq!(decided(&rules, &shell("git push x")), Some(Decision::Deny));
    assert!(read("").unwrap().is_empty());
    let wrong = |text: &str| read(text).unwrap_err();
    assert!(wrong("allow = [\n \"shell\",\n \"shel\"]").starts_with("FILE:3: \"shel\" is no rule"));
    assert!(wrong("\nalow = []").starts_with("FILE:2: unknown field `alow`"));
    assert!(wrong("allow = 'shell'").starts_with("FILE:1: invalid type"));
    assert!(wrong("allow = [").starts_with("FILE:1: "));
    assert!(Rules::default().read(&dir.path().join("none")).is_err());
    assert!(Rules::default().read(dir.path()).is_err());
}

#[test]
fn what_is_remembered_is_exactly_what_was_asked() {
    let dir = tempfile::tempdir().unwrap();
    let mut remembered = Remembered::default();
    remembered.allow(&shell("git push"));
    remembered.allow(&edit("a.txt", dir.path()));
    remembered.allow(&mcp("mcp_db_query"));
    assert!(remembered.allows(&shell("git push")));
    assert!(!remembered.allows(&shell("git push ")));
    assert!(!remembered.allows(&shell("git push; rm x")));
    assert!(remembered.allows(&edit(dir.path().join("x/../a.txt"), dir.path())));
    assert!(!remembered.allows(&edit("b.txt", dir.path())));
    let replace = Question { tool: "replace".to_owned(), ..edit("a.txt", dir.path()) };
    assert!(!remembered.allows(&replace));
    let other =
        Question { subject: Subject::Arguments(serde_json::json!({ "x": 1 })), ..mcp("mcp_db_query") };
    assert!(remembered.allows(&other));
    assert!(!remembered.allows(&mcp("mcp_db_drop")));
    // The file is another one now.
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("a.txt")).unwrap();
    assert!(!remembered.allows(&edit("a.txt", dir.path())));
}

/// Pieces that a shell gives a meaning to, and others.
fn piece() -> impl Strategy<Value = String> {
    let odd = [
        ";", "&&", "||", "|", "&", "\n", "$(", ")", "(", "`", "'", "\"", "\\", ">", "<", "<<", "$", "${",
        "}", "{", "#", "=", "*", "?", "[", "~", "!", " ", "\t", "\r", "git", "rm", "x", "-rf", "2>", "&>",
        "$x", "é", "\u{202e}", "\u{0}",
    ];
    prop_oneof![proptest::sample::select(odd.to_vec()).prop_map(str::to_owned), "[a-z ]{0,4}"]
}

proptest! {
    #[test]
    fn no_text_is_too_odd_to_be_read(text in any::<String>()) {
        let _script = Script::read(&text);
        let _ruling = deny(&["shell(rm *)"]).decide(&shell(&text));
        let _rule = Rules::default().add(Decision::Allow, &text);
        let _edit = allow(&["edit(src/**)"]).decide(&edit(text, Path::new("/srv/p")));
    }

    /// What is allowed runs nothing but `git`: asked of a real shell, in which nothing else can be found.
    #[test]
    fn what_is_allowed_runs_nothing_else(pieces in proptest::collection::vec(piece(), 0..12)) {
        let command = format!("git {}", pieces.concat());
        prop_assume!(!command.contains('\0'));
        if decided(&allow(&["shell(git *)"]), &shell(&command)) == Some(Decision::Allow) {
            let dir = tempfile::tempdir().unwrap();
            // Whatever else is run is not found, and said so; whatever is written is there afterwards.
            let script = format!("git() {{ :; }}\nset -f\n{command}\n");
            let out = std::process::Command::new("/bin/bash")
                .args(["-c", &script]).current_dir(dir.path()).env("PATH", "/nowhere").output().unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&out.stderr), "", "{}", command);
            prop_assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{}", command);
        }
    }

    /// An allowed command does not stay allowed with another behind it.
    #[test]
    fn nothing_can_be_appended(words in "[a-z -]{0,12}", separator in "(;|&&|\\|\\||\\||&|\n| ; | \\$\\(|`|>)") {
        let rules = allow(&["shell(git *)"]);
        let command = format!("git {words}{separator} rm x");
        prop_assert_eq!(decided(&rules, &shell(&command)), None);
    }

    /// What is certainly denied is not allowed by any other rule, wherever it stands.
    #[test]
    fn what_is_denied_stays_denied(before in "[a-z]{1,5}", after in "[a-z ]{0,8}") {
        let list = [(Decision::Allow, "*"), (Decision::Deny, "shell(rm *)"), (Decision::Allow, "shell")];
        for command in [format!("rm {after}"), format!("{before}; rm {after}"), format!("{before} $(rm {after})")] {
            prop_assert_eq!(decided(&rules(&list), &shell(&command)), Some(Decision::Deny));
        }
    }

    /// However a path is written, what is allowed lies below what the rule names.
    #[test]
    fn no_path_leads_out(parts in proptest::collection::vec(proptest::sample::select(vec!["..", ".", "src", "a", "etc", "/", ""]), 0..8)) {
        let path = parts.join("/");
        let dir = Path::new("/srv/nowhere/p");
        if decided(&allow(&["edit(src/**)"]), &edit(&path, dir)) == Some(Decision::Allow) {
            prop_assert!(crate::facts::resolve(dir, Path::new(&path)).starts_with("/srv/nowhere/p/src"));
        }
    }
}

#[test]
fn a_tool_whose_name_is_not_known_may_be_what_a_rule_denies_and_is_nothing_that_one_allows() {
    let dir = Path::new("/srv/p");
    let unnamed =
        |question: Question| Question { tool: "Writing to a.txt".to_owned(), named: false, ..question };
    let decided = |decision: Decision, rule: &str, question: &Question| {
        let mut rules = Rules::default();
        rules.add(decision, rule).unwrap();
        rules.decide(question).map(|ruling| ruling.decision)
    };
    for (rule, question) in [
        ("write_file", unnamed(edit("a.txt", dir))),
        ("mcp(db/drop_*)", unnamed(mcp("mcp_db_drop_x"))),
        ("glob", Question { class: Class::Unknown, ..unnamed(edit("a.txt", dir)) }),
    ] {
        assert_eq!(decided(Decision::Deny, rule, &question), Some(Decision::Deny), "{rule}");
        assert_eq!(decided(Decision::Allow, rule, &question), None, "{rule}");
    }
    assert_eq!(decided(Decision::Deny, "glob", &unnamed(edit("a.txt", dir))), None);
}
