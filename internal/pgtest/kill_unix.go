//go:build unix

package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// dyingTime bounds the time until killed processes are gone.
const dyingTime = 30 * time.Second

// Kill kills all processes of the server with SIGKILL, which it finds in /proc. It is
// like a crash of the machine, except that writes which were not synced survive.
// [Server.Restart] starts the server again, which recovers its commits.
func (s *Server) Kill() error {
	file := filepath.Join(s.folder, "data", "postmaster.pid")
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("pgtest: killing a server: %w", err)
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	pid, err := strconv.Atoi(string(first))
	if err != nil {
		return fmt.Errorf("pgtest: killing a server: its process: %w", err)
	}
	all, err := family(pid)
	if err != nil {
		return fmt.Errorf("pgtest: killing a server: %w", err)
	}
	for _, p := range all {
		if err := syscall.Kill(p, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("pgtest: killing a server: %w", err)
		}
	}
	for deadline := time.Now().Add(dyingTime); ; time.Sleep(time.Millisecond) { // poll: they are not our children
		left := 0
		for _, p := range all {
			if state, _, err := status(p); err == nil && state != 'Z' {
				left++
			}
		}
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("pgtest: killing a server: %d of its processes are still there after %s", left, dyingTime)
		}
	}
	// A dead server that nobody reaps looks like a living one.
	return errors.Join(os.Remove(file), os.Remove(filepath.Join(s.folder, ".s.PGSQL."+s.port()+".lock")))
}

// family stops a process, and returns it and its children. A running one could start
// another child meanwhile, which would hold the server's memory beyond its end.
func family(pid int) ([]int, error) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(dyingTime); ; time.Sleep(time.Millisecond) {
		state, _, err := status(pid)
		if err != nil {
			return nil, err
		}
		if state == 'T' || state == 't' || state == 'Z' { // 't': one that is traced, as by strace
			break
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("process %d has not stopped after %s", pid, dyingTime)
		}
	}
	all, err := children(pid)
	return append([]int{pid}, all...), err
}

// children returns the children of a process.
func children(parent int) (all []int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if _, p, err := status(pid); err == nil && p == parent {
			all = append(all, pid)
		}
	}
	return all, nil
}

// status reads a process's state and parent: proc(5), /proc/pid/stat. Its name, which
// comes before them in parentheses, may contain anything.
func status(pid int) (state byte, parent int, err error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscanf(string(text[bytes.LastIndexByte(text, ')')+1:]), " %c %d", &state, &parent)
	return state, parent, err
}
