use std::fs;

use proptest::prelude::*;

use super::*;

mod bash;

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
    Question {
        tool: tool.to_owned(),
        named: true,
        class,
        server: None,
        server_tool: None,
        subject,
        dir: dir.to_owned(),
        elsewhere: false,
    }
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

/// A tool whose server is known.
fn tool_of(server: &str, tool: &str) -> Question {
    let name = alhena_wire::acp::gemini::mcp_name(server, tool);
    Question { server: Some(server.to_owned()), server_tool: Some(tool.to_owned()), ..mcp(&name) }
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
        "git log $BRANCH",
        "git log \"${BRANCH}\"",
        "git commit -m \"costs \\$5\"",
        "git \\\n  status",
        "g\\it status",
        "git 2>&1>x",
        "git 12>/dev/null",
        "git >/dev/null/x",
        "git >/dev/null\\\n/x",
        "git status |& cat",
        "git status & echo",
        "bash -c 'git status' && echo '; rm x; echo '",
        "cmd.exe /c git status",
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
    let rules = allow(&["shell(git *)", "shell(echo *)", "shell(npm run test*)"]);
    let harmless = [
        "git",
        "git status",
        "  git   status  ",
        "git commit -m 'a; b && c | d > e'",
        "git commit -m 'costs $5, `x` and \\ too'",
        "git commit -m \"a (b) c!\"",
        "git commit -m 'two\nlines'",
        "git log --format='%h %s' -- src/*.rs",
        "git diff HEAD~1",
        "git --no-pager log -1",
        "git status && echo done",
        "git status; git log\ngit diff;",
        "git log |\n git shortlog",
        "git log | git shortlog",
        "git fetch >/dev/null 2>&1",
        "git fetch > /dev/null 2>&1 && echo yes",
        "git fetch &>/dev/null",
        "\"git\" status",
        "g'i't status",
        "echo 'héllo wörld' 日本",
        "echo a#b",
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
        "git -C . push origin --force",
        "git --no-pager push origin --force",
        // Outside the grammar, whatever it runs.
        "echo $HOME",
        "ls *.rs > out",
        "echo $(date)",
        "(ls)",
    ];
    for command in denied {
        assert_eq!(decided(&rules, &shell(command)), Some(Decision::Deny), "{command:?}");
    }
    let others = [
        "ls",
        "git rm x",
        "echo rm x",
        "git push origin main",
        "ls *.rs >/dev/null 2>&1",
        "grep -r rm .",
        "echo 'rm x; $(rm x)'",
        "cd x && cargo test | tail -5",
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
        "echo rm x | xargs timeout 5",
        "echo rm x | xargs taskset 1",
        "echo rm x | nice xargs timeout 5",
        "echo 'rm x' | bash -h",
        "echo 'rm x' | sh -V",
        "echo 'exec rm x' | tclsh -h",
        "echo 'exec rm x' | tclsh --version",
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
        "bash --version",
        "python script.py -c x",
        "python3 -m pytest -e",
        "node build.js",
        "perl script.pl",
        "awk '{ print $1 }' x",
        "awk -F: '{ print $1 }' x",
        "find . | xargs grep x",
        "find . -name '*.o'",
        "sudo ls",
        "timeout 60 cargo test -- --nocapture",
        "echo '$(rm x)'",
        "grep '`' x",
        "printf '%s\n' x",
        "test -f x && [ -d y ]",
        "command -v rm",
        "set -euo pipefail; ls",
        "docker rm x",
        "npm rm x",
        "git rm x",
        "tar -xzf x.tar.gz",
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
        "denied by the rule shell(rm *), which may apply because the command has a backtick; only plain words, joined by &&, ||, ; or |, can be judged"
    );
    assert_eq!(
        said("ls | sudo bash -x"),
        "denied by the rule shell(rm *), which may apply because the command has a program that can run another"
    );
}

/// Commands that ran `touch M` although a rule denied it, or although no rule allowed it.
const EVASIONS: &[&str] = &[
    // Bash removes a backslash and the newline behind it before it reads words.
    "git status \\\n# '\ntouch M #'",
    "git log $\\\n'a\\' '; touch M; echo \\'",
    "true && \\\n  touch M",
    "\\\n touch M",
    "$\\\n'\\x74ouch' M",
    "echo \"$\\\n(touch M)\"",
    // Programs that run others, or code.
    "jobs -x touch M",
    "echo x | mapfile -C 'touch M' -c 1",
    "echo x | readarray -C 'touch M' -c 1",
    "python3 -W ignore -c 'import os; os.system(\"touch M\")'",
    "perl -I x -e 'system(\"touch M\")'",
    "node -r fs -e 'require(\"child_process\").execSync(\"touch M\")'",
    "echo 'import os' | python3 /dev/fd/0",
    "echo 'import os' | python3 /proc/self/fd/0",
    "echo 'import os' | python3 /dev/stdin",
    "awk -v x=1 'BEGIN { system (\"touch M\") }'",
    "awk 'BEGIN { system (\"touch M\") }'",
    "awk 'BEGIN { \"touch M\" | getline }'",
    "linux64 touch M",
    "linux32 touch M",
    "choom -n 0 -- touch M",
    "/lib64/ld-linux-x86-64.so.2 /bin/touch M",
    "ld.so /bin/touch M",
    "echo x | split --filter='touch M'",
    "echo x | split --filt='touch M'",
    "tar cf x.tar x --checkpoint=1 --checkpoint-action=exec='touch M'",
    "tar cf x.tar --use-compress-program='touch M' x",
    "tar cIf 'touch M' x.tar x",
    "x='a[$(touch M)]'; [[ $x -eq 1 ]]",
    "[[ 'a[$(touch M)]' -eq 1 ]]",
    "test -v 'a[$(touch M)]'",
    "echo touch M | sudo -iu root",
    "sudo -u root -i touch M",
    "git -c alias.x='!touch M' x",
    "git -c core.pager='touch M' -p log",
    "git --exec-path=. status",
    "git --config-env=alias.x=X x",
    "git config alias.x '!touch M'",
    "git x",
    "git grep -O'touch M' x",
    "git grep --open='touch M' x",
    "git rebase -x 'touch M' main",
    "git rebase --exec='touch M' main",
    "git ls-remote --upload-pack='touch M' .",
    "git clone -u 'touch M' . x",
    "git clone -c core.sshCommand='touch M' x y",
    "git bisect run touch M",
    "git submodule foreach 'touch M'",
    "git filter-branch --tree-filter 'touch M'",
    "git difftool -x 'touch M'",
    "git log -1 --format='[core]%n fsmonitor = touch M' --output=.git/config && git status",
    "git diff --outp=.git/config",
    "git mv -f f .git/config; git status",
    "git init --separate-git-dir=other",
    "echo touch M | bash -h",
    "echo touch M | sh -V",
    "echo touch M | xargs timeout 5",
    "echo touch M | nice xargs timeout 5",
    "git mv -f f ./.GIT/config",
    "find . -exec touch M ';'",
    "echo '. -exec touch M ;' | xargs find",
    "echo '--compress-program=x' | xargs sort",
    "npm ex?c -- touch M",
    "npm exe -c 'touch M'",
    "npm --yes exe -c 'touch M'",
    "npm explore x -- touch M",
    "npm innit x",
    "git apply --unsafe-paths --directory=.git/hooks p.patch",
    "git format-patch -o.git/hooks --root HEAD",
    "docker r[u]n x touch M",
    "bash -e -c 'touch M'",
    "bash +x -c 'touch M'",
    "python3 -u -c 'import os; os.system(\"touch M\")'",
    "perl5.36-x86_64-linux-gnu -e 'system(\"touch M\")'",
    "sed -n '1e touch M' f",
    "sed 's/x/touch M/e' f",
    "sed 1p f -e '1e touch M'",
    "make -f /dev/null 'X:=$(shell touch M)'",
    "make 'X:=$(shell touch M)'",
    "echo 'x:;touch M' | make -f -",
    "/usr/bin/time touch M",
    "numactl touch M",
    "pkexec touch M",
    "sort --compress-program='touch M' x",
    "rsync -e 'touch M' x y:",
    "make --eval='x:;touch M' x",
    "vim -es -c '!touch M' -c q",
    "ex -s -c '!touch M' -c q",
    "echo '!touch M' | ed",
    "sqlite3 :memory: '.shell touch M'",
    "install -s --strip-program=touch x M",
    "gcc -wrapper touch,M -c x.c",
    "wget --use-askpass=touch URL",
    "ssh -o ProxyCommand='touch M' x",
    "env -S 'touch M'",
    "trap 'touch M' EXIT",
    "alias echo='touch M'",
    "hash -p /bin/touch echo",
    "enable -f ./x.so x",
    "fc -s touch",
    "complete -C 'touch M' x",
    "bind -x 'touch M'",
    "coproc touch M",
    "time touch M",
    "! touch M",
    // Gemini CLI itself takes these off and runs the rest in bash.
    "cmd.exe /c touch M",
    "pwsh -Command touch M",
    "powershell.exe -NoProfile -Command touch M",
    "zsh -c 'touch M'",
    "BASH -c 'touch M'",
];

#[test]
fn no_evasion_is_let_through_by_rules_that_allow_or_passes_one_that_denies_or_asks() {
    let programs = [
        "git",
        "echo",
        "true",
        "jobs",
        "mapfile",
        "readarray",
        "python3",
        "perl",
        "node",
        "awk",
        "linux64",
        "linux32",
        "choom",
        "/lib64/ld-linux-x86-64.so.2",
        "ld.so",
        "split",
        "tar",
        "test",
        "sudo",
        "find",
        "sort",
        "rsync",
        "make",
        "ssh",
        "env",
        "trap",
        "alias",
        "hash",
        "enable",
        "fc",
        "complete",
        "bind",
        "cmd.exe",
        "pwsh",
        "powershell.exe",
        "zsh",
        "BASH",
        "bash",
        "bash -e",
        "bash +x",
        "python3 -u",
        "perl5.36-x86_64-linux-gnu",
        "sed",
        "xargs",
        "npm",
        "docker",
        "/usr/bin/time",
        "numactl",
        "pkexec",
    ];
    let mut allows = Rules::default();
    for program in programs {
        allows.add(Decision::Allow, &format!("shell({program} *)")).unwrap();
    }
    let denies = deny(&["shell(touch *)"]);
    let asks = rules(&[(Decision::Ask, "shell(touch *)"), (Decision::Allow, "shell")]);
    for command in EVASIONS {
        assert_eq!(decided(&allows, &shell(command)), None, "{command:?}");
        assert_eq!(decided(&denies, &shell(command)), Some(Decision::Deny), "{command:?}");
        assert_eq!(decided(&asks, &shell(command)), Some(Decision::Ask), "{command:?}");
    }
}

#[test]
fn a_rule_that_names_how_a_program_runs_another_allows_it() {
    let rules = allow(&[
        "shell(git -c color.ui=always *)",
        "shell(git config user.name *)",
        "shell(npx tsc *)",
        "shell(python -c 'print(1)')",
        "shell(python *)",
        "shell(uv run pytest *)",
        "shell(timeout 60 cargo test *)",
        "shell(bash build.sh)",
        "shell(source venv/bin/activate)",
        "shell(find *)",
        "shell(printf *)",
        "shell(sed *)",
        "shell(make *)",
        "shell(npx -y prettier *)",
        "shell(bash -e build.sh)",
        "shell(./scripts/*)",
        "shell(cat docs/*)",
        "shell(npm *)",
        "shell(cargo *)",
        "shell(pytest *)",
        "shell(awk -F: *)",
        "shell(git *)",
    ]);
    for (command, allowed) in [
        ("git add src/*.rs README*", true),
        ("git mv -f cfg .gi*/config", false),
        ("git mv -f cfg ./.gi?/config", false),
        ("git mv -f cfg ~+/.git/description", false),
        ("git worktree add .gi*/refs/tags HEAD", false),
        ("git clone . .[g]it/hooks", false),
        ("git diff -- .github", true),
        ("awk -F: '{ print $1 }' x", true),
        ("awk -F: 'BEGIN { system(\"rm x\") }'", false),
        ("cargo test -p wire", true),
        ("cargo test --manifest-path evil/Cargo.toml", false),
        ("cargo -C evil test", false),
        ("npm test --prefix evil", false),
        ("npm -C evil test", false),
        ("pytest -x", true),
        ("pytest -c evil.ini", false),
        ("pytest --rootdir=evil", false),
        ("git -c color.ui=always log", true),
        ("git -c color.ui=always -c alias.x=!y x", false),
        ("git config user.name Ada", true),
        ("git config user.email x", false),
        ("npx tsc --noEmit -p .", true),
        ("npx evil", false),
        ("python -c 'print(1)'", true),
        ("python -c 'print(2)'", false),
        ("python tests.py -c x", true),
        ("python -m pytest -x", true),
        ("python", false),
        ("echo x | python", false),
        ("uv run pytest -x", true),
        ("uv run rm x", false),
        ("timeout 60 cargo test -p wire", true),
        ("bash build.sh", true),
        ("bash build.sh x", false),
        ("source venv/bin/activate", true),
        ("source other", false),
        ("find . -name '*.rs' -type f", true),
        ("find . -exec rm x ';'", false),
        ("printf '%s\\n' x", true),
        ("printf -v PATH x", false),
        ("printf %n PATH", false),
        ("sed -n '2,5p' a", true),
        ("sed -i 's,a,b,g' a b", true),
        ("sed -e 's/a/b/' a", true),
        ("sed 's/a/b/w x' a", false),
        ("sed -f x a", false),
        ("make test", true),
        ("make -j4 test", true),
        ("make CC=x", false),
        ("make -C other", false),
        ("npx -y prettier --check .", true),
        ("npx -y evil", false),
        ("bash -e build.sh", true),
        ("bash -e other.sh", false),
        ("./scripts/a.sh", true),
        ("./scripts/../evil.sh", false),
        ("cat docs/a..b", true),
        ("cat docs/../../secret", false),
        ("npm run build", true),
        ("npm install left-pad", true),
        ("npm test", true),
    ] {
        let expected = allowed.then_some(Decision::Allow);
        assert_eq!(decided(&rules, &shell(command)), expected, "{command:?}");
    }
}

#[test]
fn a_command_in_another_directory_is_not_the_one_that_a_rule_names() {
    let rules = allow(&[
        "shell(./build.sh)",
        "shell(cd *)",
        "shell(pushd *)",
        "shell(cargo test *)",
        "shell(/opt/x *)",
        "shell(bash build.sh)",
        "shell(python3 build.py)",
        "shell(timeout 60 sh build.sh)",
        "shell(source env.sh)",
        "shell(make *)",
        "shell(git *)",
        "shell(cat *)",
    ]);
    let elsewhere = |command: &str| Question { elsewhere: true, ..shell(command) };
    for (command, allowed) in [
        ("./build.sh", true),
        ("cargo test && ./build.sh", true),
        ("cd other", true),
        ("cd other && cd more && cat x", true),
        ("cd other && cargo test", false),
        ("cd other && /opt/x y", false),
        ("cd other && make test", false),
        ("cd other && git add .", false),
        ("bash build.sh && python3 build.py", true),
        ("cd other && ./build.sh", false),
        ("cd other && bash build.sh", false),
        ("timeout 60 sh build.sh && source env.sh", true),
        ("cd other && timeout 60 sh build.sh", false),
        ("cd other && source env.sh", false),
        ("cd other && python3 build.py", false),
        ("cd other; cargo test; ./build.sh", false),
        ("./build.sh; pushd other; ./build.sh", false),
    ] {
        assert_eq!(decided(&rules, &shell(command)), allowed.then_some(Decision::Allow), "{command:?}");
        assert_eq!(decided(&rules, &elsewhere(command)), None, "{command:?}");
    }
    assert_eq!(decided(&allow(&["shell"]), &elsewhere("./build.sh")), Some(Decision::Allow));
    assert_eq!(decided(&deny(&["shell(./build.sh)"]), &elsewhere("./build.sh")), Some(Decision::Deny));
    let mut remembered = Remembered::default();
    remembered.allow(&elsewhere("./build.sh"));
    remembered.allow(&shell("./test.sh"));
    assert!(!remembered.allows(&elsewhere("./build.sh")) && !remembered.allows(&shell("./build.sh")));
    assert!(remembered.allows(&shell("./test.sh")) && !remembered.allows(&elsewhere("./test.sh")));
}

#[test]
fn a_command_that_only_reads_here_is_told_from_others() {
    let dir = tempfile::tempdir().unwrap();
    alhena_sys::files::symlink("/etc", dir.path().join("out")).unwrap();
    for command in
        ["ls", "ls -la src", "cat a.txt | grep -n x | wc -l", "head -5 a && tail -5 b", "echo 'a; b'", "pwd"]
    {
        assert!(only_reads(command, dir.path()), "{command}");
    }
    for command in [
        "",
        "ls > x",
        "cat /etc/passwd",
        "cat ../x",
        "cat ~/x",
        "cat out/passwd",
        "ls *.rs",
        "touch x",
        "git push",
        "git status",
        "git -c a=b log",
        "echo \"$\\\n(touch M)\"",
        "git log $\\\n'a\\' '; touch M; echo \\'",
        "cd x && ls",
        "grep --file=/etc/passwd x",
        "grep -nR x",
        "grep --dereference-rec x",
        "wc --files0-from=list",
        "echo x | sh",
    ] {
        assert!(!only_reads(command, dir.path()), "{command}");
    }
}

#[test]
fn a_rule_for_commands_is_not_about_tools_that_run_none() {
    let known = question(
        "read_background_output",
        Class::Command,
        Subject::Text("Reading".to_owned()),
        Path::new("/p"),
    );
    assert_eq!(decided(&deny(&["shell(rm *)"]), &known), None);
    assert_eq!(decided(&deny(&["shell"]), &known), Some(Decision::Deny));
    let unknown = Question { named: false, ..known };
    assert_eq!(decided(&deny(&["shell(rm *)"]), &unknown), Some(Decision::Deny));
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
    let link = |to: &Path, at: &str| alhena_sys::files::symlink(to, dir.join(at)).unwrap();
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
    alhena_sys::files::symlink(&dir, &other).unwrap();
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
    assert_eq!(decided(&rules, &tool_of("db", "admin_rows")), Some(Decision::Allow));
    assert_eq!(decided(&rules, &tool_of("db_admin", "rows")), None);
    assert_eq!(decided(&rules, &mcp("mcp_mail_send_now")), Some(Decision::Allow));
    assert_eq!(decided(&rules, &mcp("mail__send_now")), Some(Decision::Allow));
    assert_eq!(decided(&deny(&["mcp(db)"]), &mcp("mcp_db_admin_rows")), Some(Decision::Deny));
    // A shell command is no tool of a server, whatever it is called.
    let odd = Question { class: Class::Command, ..mcp("mcp_db_query") };
    assert_eq!(decided(&rules, &odd), None);
}

#[test]
fn a_long_or_odd_name_of_a_tool_does_not_evade_a_rule() {
    let long = format!("drop_{}table", "very_".repeat(12));
    let shown = alhena_wire::acp::gemini::mcp_name("srv", &long);
    assert_eq!(shown.len(), 63);
    for (rule, server, tool) in [
        (format!("mcp(srv/{long})"), "srv", long.as_str()),
        (format!("mcp_srv_{long}"), "srv", &long),
        (shown.clone(), "srv", &long),
        ("mcp(srv/*_very_very_*)".to_owned(), "srv", &long),
        ("mcp(srv)".to_owned(), "srv", &long),
        ("mcp(srv/lösche)".to_owned(), "srv", "lösche"),
        ("mcp(srv/lösch*)".to_owned(), "srv", "lösche"),
        ("mcp(srv/l_sche)".to_owned(), "srv", "lösche"),
        ("mcp(my_srv/drop)".to_owned(), "my srv", "drop"),
        ("mcp(my_srv/*)".to_owned(), "my srv", "drop"),
        ("mcp_my_srv_drop".to_owned(), "my_srv", "drop"),
        ("mcp_my__srv_drop".to_owned(), "my__srv", "drop"),
        ("mcp_srv__drop".to_owned(), "mcp_srv", "drop"),
        ("mcp(mcp_srv/drop)".to_owned(), "mcp_srv", "drop"),
        ("mcp(mcp_srv/dr*)".to_owned(), "mcp_srv", "drop"),
        ("mcp(srv/_dr*)".to_owned(), "srv", "_drop"),
        // Names without an underscore to divide them at.
        ("mcp".to_owned(), "mcp", "do"),
        ("mcp(mcp)".to_owned(), "mcp", "do"),
        ("mcp(mcp/do)".to_owned(), "mcp", "do"),
        ("mcp(mcp/d*)".to_owned(), "mcp", "do"),
        ("mcp".to_owned(), "_u", "do"),
        ("mcp(_u/do)".to_owned(), "_u", "do"),
        ("mcp(_u/d*)".to_owned(), "_u", "do"),
        ("mcp".to_owned(), "日本", "do"),
        ("mcp(日本/do)".to_owned(), "日本", "do"),
        ("mcp".to_owned(), "acme-internal-knowledge-base", "delete-all-documents-and-attachments"),
        ("mcp(acme*)".to_owned(), "acme-internal-knowledge-base", "delete-all-documents-and-attachments"),
        // Claude's form of a name can be the name that Gemini CLI gives.
        ("mcp__a__b".to_owned(), "a", "b"),
        ("mcp__a__b".to_owned(), "mcp", "a__b"),
        ("mcp__a__b".to_owned(), "mcp__a", "b"),
        ("mcp___lead".to_owned(), "mcp_", "_lead"),
        ("mcp___d__o".to_owned(), "mcp_", "d__o"),
    ] {
        let known = tool_of(server, tool);
        // Its title is hidden by an argument, or only the name is told, as to hooks.
        let unknown = Question { server: None, server_tool: None, ..known.clone() };
        for question in [&known, &unknown] {
            for decision in [Decision::Deny, Decision::Ask] {
                let rules = rules(&[(decision, &rule), (Decision::Allow, "*")]);
                assert_eq!(decided(&rules, question), Some(decision), "{rule} {question:?}");
            }
        }
    }
    // What only may be meant is not allowed.
    let middle = format!("drop_{0}much_{0}very_table", "very_".repeat(5));
    let (drop, other) = (tool_of("srv", &long), tool_of("srv", &middle));
    assert_eq!(drop.tool.get(..30), other.tool.get(..30));
    let unknown = Question { server: None, server_tool: None, ..drop.clone() };
    for (rule, question, expected) in [
        (format!("mcp(srv/{long})"), &drop, Some(Decision::Allow)),
        (format!("mcp(srv/{long})"), &other, None),
        (format!("mcp(srv/{long})"), &unknown, None),
        (shown, &drop, None),
        ("mcp(srv)".to_owned(), &unknown, None),
        ("mcp(srv/l_sche)".to_owned(), &tool_of("srv", "lösche"), None),
        ("mcp_my_srv_drop".to_owned(), &tool_of("my_srv", "drop"), None),
        ("mcp(my_srv/*)".to_owned(), &tool_of("my srv", "drop"), None),
        ("mcp(mcp/do)".to_owned(), &tool_of("mcp", "do"), Some(Decision::Allow)),
        ("mcp__a__b".to_owned(), &tool_of("a", "b"), Some(Decision::Allow)),
        ("mcp__a__b".to_owned(), &tool_of("mcp", "a__b"), None),
        ("mcp__a__b".to_owned(), &tool_of("mcp__a", "b"), None),
    ] {
        assert_eq!(decided(&allow(&[&rule]), question), expected, "{rule}");
    }
    assert_eq!(decided(&deny(&["mcp(srv/other)", "mcp(srvs)", "mcp(x*)"]), &drop), None);
    assert_eq!(decided(&deny(&["mcp(other/x)"]), &unknown), None);
}

#[test]
fn a_rule_that_can_be_divided_in_several_ways_denies_in_all_of_them_and_allows_nothing() {
    for rule in ["mcp__my__srv__drop", "my__srv__drop"] {
        for (server, tool) in [("my", "srv__drop"), ("my__srv", "drop")] {
            let known = tool_of(server, tool);
            assert_eq!(decided(&deny(&[rule]), &known), Some(Decision::Deny), "{rule} {server}");
            let unknown = Question { server: None, server_tool: None, ..known };
            assert_eq!(decided(&deny(&[rule]), &unknown), Some(Decision::Deny), "{rule} {server}");
        }
        let error = Rules::default().add(Decision::Allow, rule).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{rule:?} is no rule: it does not say where the server's name ends")
        );
    }
    assert_eq!(decided(&deny(&["mcp__my__srv__*"]), &tool_of("my__srv", "drop")), Some(Decision::Deny));
    assert_eq!(decided(&allow(&["mcp__srv__drop"]), &tool_of("srv", "drop")), Some(Decision::Allow));
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
            r#""shell(a > b)" is no rule: it has a redirection, and a rule is one plain command"#,
        ),
        ("shell(* *)", r#""shell(* *)" is no rule: it limits nothing"#),
        ("shell($X *)", r#""shell($X *)" is no rule: it has a dollar sign, and a rule is one plain command"#),
        (
            "shell(ls a?)",
            r#""shell(ls a?)" is no rule: "a?" means something to a shell; only * stands for anything, the rest goes in quotes"#,
        ),
        (
            "shell(CI=1 npm test)",
            r#""shell(CI=1 npm test)" is no rule: it has an assignment, and a rule is one plain command"#,
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
    alhena_sys::files::symlink("/etc/passwd", dir.path().join("a.txt")).unwrap();
    assert!(!remembered.allows(&edit("a.txt", dir.path())));
}

proptest! {
    #[test]
    fn no_text_is_too_odd_to_be_read(text in any::<String>()) {
        let _ruling = deny(&["shell(rm *)"]).decide(&shell(&text));
        let _rule = Rules::default().add(Decision::Allow, &text);
        let _edit = allow(&["edit(src/**)"]).decide(&edit(text, Path::new("/srv/p")));
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
