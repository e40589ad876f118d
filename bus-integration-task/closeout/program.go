package closeout

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Words in the names of programs, subcommands, targets and scripts that run tests or
// checks.
var testWords = strings.Fields(`test tests check checks vet lint verify validate spec specs unittest unittests e2e
	pytest nosetests tox nox behave unit eunit flake8 pylint mypy pyright ruff bandit
	jest vitest mocha ava karma cypress playwright jasmine eslint stylelint tsc oxlint biome
	rspec rubocop cucumber phpunit pest phpstan psalm ctest cppcheck gotestsum ginkgo golangci
	staticcheck govulncheck errcheck revive clippy nextest credo dialyzer analyze analyse
	prove bats shellcheck hadolint yamllint actionlint markdownlint tflint`)

// Programs that only mention tests.
var readers = strings.Fields(`test [ [[ echo printf cat ls grep egrep rg ag find fd sed awk head tail less more wc
	cd pushd mkdir rm cp mv touch ln chmod tee true : which type man git diff export set unset source .
	xargs read sleep vi vim nano ed code open cut sort tree stat file jq wait kill`)

// Programs that run what a subcommand or target names, by how their words are read.
var (
	subcommands = strings.Fields(`go cargo npm pnpm yarn bun deno npx bunx pnpx pdm uv uvx poetry pipenv hatch rye
		bundle rails django-admin manage.py artisan composer dotnet swift mix rebar3 flutter dart bazel bazelisk
		buck2 nix helm terraform tofu buf opa conftest ng nx turbo lerna coverage nyc c8 cabal stack lein meson
		xcodebuild pants sqlfluff task just mise`)
	targets    = strings.Fields(`make gmake bmake ninja cmake gradle gradlew mvn mvnw ant sbt rake mage invoke inv grunt gulp zig`)
	launchers  = strings.Fields(`docker podman docker-compose direnv devbox kubectl vagrant`)
	packages   = strings.Fields(`npx bunx pnpx uvx`) // their first word is a program
	interprets = regexp.MustCompile(`^(python|pypy|node|nodejs|ruby|php|perl|rscript|lua|pwsh|tsx|ts-node|sh|bash|dash|zsh|ksh)[0-9.]*$`)
)

// Words between a program and what it runs.
var between = strings.Fields(`run run-script exec x dlx tool task flake workspaces foreach`)

// Subcommands of programs that test by themselves with which they do not.
var others = strings.Fields(`install add get build help list ls version init config format fmt linters cache open show show-report completion uninstall`)

// Options with which a program only describes itself or what it would run.
var (
	dryOptions = strings.Fields(`--version -version --help -help -h --usage --dry-run --just-print --recon --question --touch
		--collect-only --co --list --list-tests --listtests --list-envs --listenvs --no-run --show-only --showconfig
		--init --print-config -dskiptests -dmaven.test.skip`)
	dryOf = map[string]*regexp.Regexp{
		"go":    regexp.MustCompile(`^--?(list(=.*)?|c|n)$`),
		"make":  regexp.MustCompile(`^-[beiklrswBLS]*[nqt][a-zA-Z]*$`),
		"gmake": regexp.MustCompile(`^-[beiklrswBLS]*[nqt][a-zA-Z]*$`),
		"ctest": regexp.MustCompile(`^-N$`),
		"tox":   regexp.MustCompile(`^-l$`),
		"nox":   regexp.MustCompile(`^-l$`),
	}
	noTests = regexp.MustCompile(`^\^?(\$|(?i:x+|none|nothing)\$?)$`) // what -run of go test matches
)

// Options whose next word is their value.
var (
	valued = strings.Fields(`-C -f -p -pl -o -w --prefix --directory --cwd --dir --filter --file --makefile --workspace
		--package --with --from --project -project -scheme -destination --build --manifest-path --target-dir -x`)
	valuedOf = map[string][]string{ // where the meaning is another one
		"make": {"-C", "-f", "-o", "-W", "-I", "--directory", "--file", "--makefile"},
		"pnpm": {"-C", "-F", "--dir", "--filter"}, // -w has no value
	}
	valuedForInterpreters = strings.Fields(`-W -X -r -I -d --require --import --loader`)
)

var notLetters = regexp.MustCompile(`[^\pL\pN]+`)

// named reports whether a name has a word of tests, as test-unit and unit_test.sh do.
func named(name string) bool {
	return slices.ContainsFunc(notLetters.Split(strings.ToLower(name), -1), func(part string) bool { return slices.Contains(testWords, part) })
}

// onlyReads reports whether a step reads, prints or moves about, so that its success
// proves nothing of the work.
func (s step) onlyReads() bool { return slices.Contains(readers, path.Base(s.words[0])) }

// isTest reports whether a step runs tests or checks: a program that does, or a program,
// target or script with such a name.
func (s step) isTest() bool { return runsTests(s.words, false) }

// runsTests is isTest for words that a launcher has launched, or that stand alone.
func runsTests(words []string, launched bool) bool {
	words = unwrapped(words)
	if len(words) == 0 {
		return false
	}
	program := programOf(words[0])
	args := words[1:]
	switch {
	case slices.Contains(readers, program):
		return false
	case slices.Contains(launchers, program):
		return !launched && launches(args) // else launches tries what is behind it
	case isDry(program, args):
		return false
	case slices.Contains(args, "--check"), slices.Contains(args, "--verify"): // of formatters and generators
		return true
	case slices.Contains(subcommands, program):
		return subcommand(program, args, launched)
	case slices.Contains(targets, program):
		return slices.ContainsFunc(operands(program, args), isTarget)
	case interprets.MatchString(program):
		return script(args, launched)
	case program == "pre-commit":
		return slices.Contains(args, "run")
	case named(program), isRelative(words[0]) && named(words[0]):
		return len(args) == 0 || !slices.Contains(others, args[0])
	}
	return isRelative(words[0]) && isTarget(firstOperand(program, args)) // a script of the repository
}

// unwrapped returns what programs such as env run.
func unwrapped(words []string) []string {
	for len(words) > 0 && slices.Contains(wrappers, path.Base(words[0])) {
		words = words[1:]
		for len(words) > 0 && skipped.MatchString(words[0]) {
			words = words[1:]
		}
	}
	return words
}

// skipped are the options, variables and durations between a wrapper and its command.
var skipped = regexp.MustCompile(`^(-.*|[A-Za-z_][A-Za-z0-9_]*=.*|[0-9.]+[smhd]?)$`)

// programOf returns the name of a program or package without its folder and version.
func programOf(word string) string {
	if at := strings.LastIndexByte(word, '@'); at > 0 {
		word = word[:at]
	}
	return strings.TrimSuffix(strings.ToLower(path.Base(word)), ".exe")
}

func isRelative(program string) bool { return strings.Contains(program, "/") && !path.IsAbs(program) }

// isTarget reports whether a word names a target or subcommand that tests, not a path or
// a variable.
func isTarget(word string) bool { return named(word) && !strings.ContainsAny(word, "/=") }

func isDry(program string, args []string) bool {
	only := dryOf[program]
	for i, word := range args {
		option, _, _ := strings.Cut(strings.ToLower(word), "=")
		if slices.Contains(dryOptions, option) || only != nil && only.MatchString(word) {
			return true
		}
		if program == "go" && (word == "-run" && i+1 < len(args) && noTests.MatchString(args[i+1]) ||
			strings.HasPrefix(word, "-run=") && noTests.MatchString(word[len("-run="):])) {
			return true
		}
	}
	return false
}

// operands returns the words that are neither options nor their values.
func operands(program string, args []string) (list []string) {
	values, ok := valuedOf[program]
	if !ok {
		values = valued
	}
	for i := 0; i < len(args); i++ {
		switch word := args[i]; {
		case slices.Contains(values, word):
			i++
		case !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "+"):
			list = append(list, word)
		}
	}
	return list
}

func firstOperand(program string, args []string) string {
	if list := operands(program, args); len(list) > 0 {
		return list[0]
	}
	return ""
}

// subcommand reports whether the subcommand in args tests, or runs something that does.
func subcommand(program string, args []string, launched bool) bool {
	list := operands(program, args)
	runs := slices.Contains(packages, program)
	for i := 0; i < len(list); i++ {
		word := list[i]
		switch {
		case slices.Contains(between, word):
			runs = true
		case word == "workspace":
			i++ // its name
		case word == "t" && program == "npm":
			return true
		case isTarget(word), runs && named(programOf(word)):
			return i+1 == len(list) || !slices.Contains(others, list[i+1])
		default:
			return runs && runsTests(args[slices.Index(args, word):], launched)
		}
	}
	// coverage run -m pytest
	at := slices.Index(args, "-m")
	return program == "coverage" && at >= 0 && runsTests(args[at+1:], launched)
}

// launches reports whether something behind run or exec tests, as in docker run IMAGE
// pytest.
func launches(args []string) bool {
	at := slices.IndexFunc(args, func(word string) bool {
		return slices.Contains([]string{"run", "exec", "-c"}, word)
	})
	if at < 0 {
		return false
	}
	for i := range args[at:] {
		if rest := args[at+i:]; !strings.HasPrefix(rest[0], "-") && runsTests(rest, true) {
			return true
		}
	}
	return false
}

// script reports whether the script or module that an interpreter runs tests.
func script(args []string, launched bool) bool {
	for i := 0; i < len(args); i++ {
		switch word := args[i]; {
		case word == "-m":
			return runsTests(args[i+1:], launched)
		case word == "--test":
			return true
		case word == "-c", word == "-e", word == "-p", word == "--eval", word == "--print":
			return false
		case slices.Contains(valuedForInterpreters, word):
			i++
		case !strings.HasPrefix(word, "-"):
			return named(word) || isTarget(firstOperand("", args[i+1:])) // manage.py test
		}
	}
	return false
}
