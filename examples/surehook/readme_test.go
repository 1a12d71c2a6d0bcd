package main_test

import (
	"cmp"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what the commands print into README.md")

var (
	consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")
	identifier   = regexp.MustCompile(`\b(?:evt|dlv|wsub|job|rpl|ntc)_[a-z0-9]+(?:_[0-9]+)?\b`)
	// These differ from run to run, beside the ids.
	passing = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?|\d\d:\d\d:\d\d|\b\d+(?:\.\d+)?(?:ms|µs|s)\b|\b1\d{9}\b|whsec_\S+|-from \S+|\b\d+ (?:bytes|[KMG]iB)|with [0-9a-f]{8} \(fingerprint [0-9a-f]{8}\)`)
	spaces  = regexp.MustCompile(` +`)
)

// shape is an output without what differs from run to run.
func shape(text string) string {
	return spaces.ReplaceAllString(passing.ReplaceAllString(identifier.ReplaceAllString(text, "ID"), "…"), " ")
}

// walk runs the commands of README.md.
type walk struct {
	*user
	customer *endpoint
	ids      map[string]string // README's, and those of this run
	last     map[string]string // of each kind
	address  *strings.Replacer // README's, likewise
	back     *strings.Replacer
}

// own is a line of README with the ids of this run: of those that it does not show, the
// last that was printed.
func (w *walk) own(line string) string {
	return identifier.ReplaceAllStringFunc(line, func(id string) string {
		if own, ok := w.ids[id]; ok {
			return own
		}
		kind, _, _ := strings.Cut(id, "_")
		return cmp.Or(w.last[kind], id)
	})
}

func (w *walk) shell(line string) *exec.Cmd {
	cmd := w.command()
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", strings.Replace(w.address.Replace(line), "surehook ", `exec "`+surehook+`" `, 1)}
	return cmd
}

// learn pairs the ids of README's output with those that were printed.
func (w *walk) learn(expected, printed string) {
	theirs, ours := identifier.FindAllString(expected, -1), identifier.FindAllString(printed, -1)
	for i := range min(len(theirs), len(ours)) {
		w.ids[theirs[i]] = ours[i]
	}
	for _, id := range ours {
		kind, _, _ := strings.Cut(id, "_")
		w.last[kind] = id
	}
}

// run runs a line when what it shows has come about, and returns what it prints.
func (w *walk) run(line, expected string) string {
	name := strings.Fields(line)[1]
	switch name {
	case "deliveries":
		w.dead(2)
	case "redeliver":
		w.customer.answers(http.StatusOK)
	}
	out, _ := w.shell(line).CombinedOutput() // some of them end with 1
	printed := w.back.Replace(string(out))
	w.learn(expected, printed)
	if again := map[string]int{"redeliver": 1, "replay": 2}[name]; again > 0 && !strings.Contains(line, "-dry-run") {
		eventually(w.t, "its end", func() (l listed) {
			w.reads(&l, "deliveries", "-status", "delivered")
			return l
		}, func(l listed) bool { return len(l.Data) == again })
	}
	return printed
}

// The commands of README.md print what it says.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	w := newWalk(t)
	var listening *process
	begun := "" // the block of listen, whose output ends with the next block
	fresh := consoleBlock.ReplaceAllStringFunc(string(text), func(block string) string {
		inner := consoleBlock.FindStringSubmatch(block)[1]
		var out strings.Builder
		for _, part := range strings.Split("\n"+inner, "\n$ ")[1:] {
			line, expected, _ := strings.Cut(part, "\n")
			line = w.own(line)
			if strings.HasPrefix(line, "surehook listen") {
				listening = launch(t, w.shell(line))
				listening.says(t, "Ctrl-C ends\n")
				begun = line
				return "```console\n$ " + line + "\nLISTEN```"
			}
			printed := w.run(line, expected)
			out.WriteString("$ " + line + "\n" + printed)
		}
		if listening != nil {
			listening.says(t, "order.created order/ord_17")
			said, code := listening.interrupt(t)
			require.Zero(t, code)
			begun, listening = w.back.Replace(said), nil
		}
		return "```console\n" + out.String() + "```"
	})
	fresh = strings.Replace(fresh, "LISTEN```", strings.Replace(begun, "ended:", "^C\nended:", 1)+"```", 1)
	if *update {
		require.NoError(t, os.WriteFile("README.md", []byte(fresh), 0o600))
		return
	}
	require.Equal(t, shape(string(text)), shape(fresh), "go test ./examples/surehook -run TestReadme -update writes it anew")
}

func newWalk(t *testing.T) *walk {
	t.Helper()
	dir := t.TempDir()
	own, customer := newEndpoint(t), newEndpoint(t)
	customer.answers(http.StatusInternalServerError)
	// Its key is made beside the file, as doctor's example has it.
	server := launch(t, exec.Command(referenceServer, "-addr", "127.0.0.1:0", "-database", filepath.Join(dir, "surehook.db"), "-operator-token", operatorToken,
		"-allow-private-networks", "-schedule", "1s", "-horizon", "1us", "-log-level", "error"))
	_, base, _ := strings.Cut(strings.TrimSpace(server.says(t, "\n")), "listening on ")
	u := &user{t, dir, []string{"SUREHOOK_SERVER=" + base, "SUREHOOK_TOKEN=" + operatorToken}}
	u.write("secret.txt", secret)
	u.write("captures.txt", secret)
	u.subscribe(customer.URL+"/webhooks", "invoice.*")
	captures, err := filepath.Abs("verify/testdata")
	require.NoError(t, err)
	host := func(e *endpoint) string { return strings.TrimPrefix(e.URL, "http://") }
	return &walk{
		user: u, customer: customer, ids: map[string]string{}, last: map[string]string{},
		address: strings.NewReplacer("127.0.0.1:3000", host(own), "examples/surehook/verify/testdata", captures),
		back:    strings.NewReplacer(host(own), "127.0.0.1:3000", host(customer), "127.0.0.1:4000", strings.TrimPrefix(base, "http://"), "127.0.0.1:8080"),
	}
}

// README, help and the flags name the same commands. README names each flag in the section of
// its command, or before the first one.
func TestHelp(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	sections := strings.Split(string(text), "\n## ")
	u := newUser(t)
	commands := regexp.MustCompile(`(?m)^  ([a-z]+) +(.+)$`).FindAllStringSubmatch(u.does("help"), -1)
	require.Len(t, commands, 17)
	for _, c := range commands {
		require.Contains(t, string(text), "["+c[1]+"](#", "README's table")
		help := u.does(c[1], "-h")
		require.Contains(t, help, "\nexample:\n  ")
		require.Contains(t, help, "surehook "+c[1])
		require.Contains(t, help, "  -json\n")
		about := sections[0]
		for _, section := range sections[1:] {
			if heading, _, _ := strings.Cut(section, "\n"); slices.Contains(strings.Split(heading, ", "), c[1]) {
				about += section
			}
		}
		for _, flag := range regexp.MustCompile(`(?m)^  (-[a-z-]+)`).FindAllStringSubmatch(help, -1) {
			require.Regexp(t, "[`( ]"+flag[1]+"[ `=]", about, "README on %s", c[1])
		}
	}
}
