// Package killtest kills processes as kill -9 does, and lets a test check what they have
// left.
//
// The processes are the test's own program, which is started again: TestMain gives
// [Serve] all that they can do. A [Case] says what they do, when they are killed, and
// what must hold then.
package killtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// These tell a process that it is a child, and what it has to do.
const (
	childName = "SUREHOOK_TEST_CHILD"
	childArg  = "SUREHOOK_TEST_CHILD_ARG"
)

// Child is something that a process does until it is killed.
type Child[A any] struct {
	name string
	run  func(ctx context.Context, arg A) error
}

// NewChild returns a Child. The name tells it from others of the program. The argument
// reaches the process as JSON. For each thing that the test is to know of, run prints a
// short line on standard output, in one call. A run that returns, even nil, fails the
// test.
func NewChild[A any](name string, run func(ctx context.Context, arg A) error) Child[A] {
	return Child[A]{name, run}
}

// Command returns a command that starts this program as a process that does it.
func (c Child[A]) Command(arg A) *exec.Cmd {
	text, err := json.Marshal(arg)
	if err != nil {
		panic(err)
	}
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(program) //nolint:noctx // it is killed, or ends with its case
	cmd.Env = append(os.Environ(), childName+"="+c.name, childArg+"="+string(text))
	return cmd
}

func (c Child[A]) serve(name, text string) {
	if name != c.name {
		return
	}
	var arg A
	err := json.Unmarshal([]byte(text), &arg)
	if err == nil {
		err = c.run(context.Background(), arg)
	}
	fmt.Fprintf(os.Stderr, "%s has ended by itself: %v\n", name, err)
	os.Exit(2)
}

// Serve does not return in a process that was started by a Child's Command: it does what
// that Child does. The process ends with the test's, also if that is killed. In all other
// processes Serve does nothing.
func Serve(children ...interface{ serve(name, arg string) }) {
	name := os.Getenv(childName)
	if name == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	for _, c := range children {
		c.serve(name, os.Getenv(childArg))
	}
	panic("killtest: TestMain serves no child " + name)
}
