package killtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/killtest"
)

func TestMain(m *testing.M) {
	killtest.Serve(counting, ending, racing)
	os.Exit(m.Run())
}

// counting prints numbers. A file of each process's remembers the last one.
var counting = killtest.NewChild("counting", func(_ context.Context, folder string) error {
	for n := 1; ; n++ {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprint(os.Getpid())), []byte(fmt.Sprint(n)), 0o600); err != nil {
			return err
		}
		fmt.Println(os.Getpid(), n)
	}
})

// ending ends by itself, after a line with its process id.
var ending = killtest.NewChild("ending", func(_ context.Context, says string) error {
	fmt.Println(os.Getpid())
	if says == "" {
		return nil
	}
	return errors.New(says)
})

// racing says what the race detector says.
var racing = killtest.NewChild("racing", func(ctx context.Context, _ int) error {
	fmt.Fprintln(os.Stderr, "WARNING: DATA RACE")
	fmt.Println("a line")
	<-ctx.Done()
	return nil
})

// All are killed in each round, and none runs while Check does. Nothing that was printed
// is missed.
func TestKillsAll(t *testing.T) {
	folder := t.TempDir()
	last := map[string]int{} // by process
	lines, rounds := 0, 0
	killtest.Run(t, killtest.Case{
		Child:     func(int) *exec.Cmd { return counting.Command(folder) },
		Rounds:    3,
		Processes: 2,
		Point:     killtest.Lines(5, 20),
		Within:    5 * time.Millisecond,
		Heard: func(line string) {
			var pid, n int
			_, err := fmt.Sscan(line, &pid, &n)
			require.NoError(t, err)
			last[fmt.Sprint(pid)] = n
			lines++
		},
		Check: func() {
			rounds++
			files, err := os.ReadDir(folder)
			require.NoError(t, err)
			for _, f := range files {
				// It may have died before it could tell of what it had written, or while
				// it wrote.
				text, err := os.ReadFile(filepath.Join(folder, f.Name()))
				require.NoError(t, err)
				if len(text) > 0 {
					require.Contains(t, []string{fmt.Sprint(last[f.Name()]), fmt.Sprint(last[f.Name()] + 1)}, string(text))
				}
			}
			require.GreaterOrEqual(t, lines, 5*rounds)
		},
	})
	require.Equal(t, 3, rounds)
}

// One is killed in each round and replaced before Check; the others go on.
func TestReplaces(t *testing.T) {
	folder := t.TempDir()
	started, checked := 0, 0
	killtest.Run(t, killtest.Case{
		Child: func(n int) *exec.Cmd {
			started++
			require.Equal(t, started, n)
			return counting.Command(folder)
		},
		Rounds: 4, Processes: 3, Replace: true,
		Point: func(r *killtest.Running) {
			r.Lines(3)
			require.Len(t, r.Others(), 2)
		},
		Check: func() {
			checked++
			require.Equal(t, 3+checked, started)
		},
	})
	require.Equal(t, 7, started)
}

// A point can be a signal of the test's.
func TestAwaits(t *testing.T) {
	signal := make(chan struct{}, 1)
	killtest.Run(t, killtest.Case{
		Child: func(int) *exec.Cmd { return counting.Command(t.TempDir()) }, Rounds: 1,
		Heard: func(string) {
			select {
			case signal <- struct{}{}:
			default:
			}
		},
		Point: func(r *killtest.Running) { r.Await(signal) },
	})
}

// A process that ends by itself fails the test, which shows what it has printed. So does
// a data race.
func TestFails(t *testing.T) {
	for name, c := range map[string]struct {
		child func(int) *exec.Cmd
		point func(*killtest.Running)
		says  []string
	}{
		"before the point":    {func(int) *exec.Cmd { return ending.Command("the disk is full") }, killtest.Lines(2, 2), []string{"process 1 has ended by itself", "the disk is full"}},
		"without an error":    {func(int) *exec.Cmd { return ending.Command("") }, killtest.Lines(2, 2), []string{"process 1 has ended by itself", "<nil>"}},
		"before it can begin": {func(int) *exec.Cmd { return exec.Command(filepath.Join(t.TempDir(), "nothing")) }, killtest.Lines(1, 1), []string{"starting process 1"}},
		"in a race":           {func(int) *exec.Cmd { return racing.Command(1) }, killtest.Lines(1, 1), []string{"process 1 has a data race"}},
		"as one that is unknown": {func(int) *exec.Cmd {
			return killtest.NewChild("unknown", func(context.Context, int) error { return nil }).Command(1)
		}, killtest.Lines(1, 1), []string{"serves no child unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			says := run(t, killtest.Case{Child: c.child, Rounds: 1, Point: c.point})
			for _, text := range c.says {
				require.Contains(t, says, text)
			}
		})
	}
	t.Run("between the point and the kill", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("NOT TESTED: nothing tells that a process is gone")
		}
		said := make(chan string, 1)
		says := run(t, killtest.Case{
			Child: func(int) *exec.Cmd { return ending.Command("now") }, Rounds: 1,
			Heard: func(line string) { said <- line },
			Point: func(*killtest.Running) {
				pid, err := strconv.Atoi(<-said)
				require.NoError(t, err)
				process, err := os.FindProcess(pid)
				require.NoError(t, err)
				require.Eventually(t, func() bool { return process.Signal(syscall.Signal(0)) != nil }, time.Minute, time.Millisecond)
			},
		})
		require.Contains(t, says, "process 1 was to be killed, and has ended by itself: exit status 2")
	})
}

// run runs a case that fails, and returns what it says.
func run(t *testing.T, c killtest.Case) string {
	t.Helper()
	failing := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { failing.cleanUp() }()
		killtest.Run(failing, c)
	}()
	<-done
	require.True(t, failing.Failed(), "it must fail")
	return failing.text.String()
}

// failing is a test that may fail.
type failing struct {
	testing.TB
	failed  bool
	text    strings.Builder
	cleanUp func()
}

func (f *failing) Helper()           {}
func (f *failing) Cleanup(fn func()) { f.cleanUp = fn }
func (f *failing) Failed() bool      { return f.failed }

func (f *failing) Logf(format string, args ...any) { fmt.Fprintf(&f.text, format+"\n", args...) }

func (f *failing) Errorf(format string, args ...any) {
	f.Logf(format, args...)
	f.failed = true
}

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *failing) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }
