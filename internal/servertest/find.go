//go:build linux

package servertest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// packages are Debian's, where they are not named as their program is.
var packages = map[string]string{"mariadbd": "mariadb-server", "nginx": "nginx-light", "node": "nodejs", "php": "php-cli"}

// names are those in SUREHOOK_REQUIRE, where they are not the program's.
var names = map[string]string{"mariadbd": "mariadb"}

// Find returns the path of a program. Without it the test is skipped, or fails if
// SUREHOOK_REQUIRE, a list with commas, names the program.
func Find(t testing.TB, program string) string {
	t.Helper()
	path, err := find(program)
	switch {
	case err == nil:
	case slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), cmp.Or(names[program], program)):
		t.Fatal(err)
	default:
		t.Skipf("NOT TESTED with %s: %v", program, err)
	}
	return path
}

// find looks first in the folders in which Debian installs servers, which may be missing
// in PATH, and then in PATH. The user that a server runs as cannot run a binary in
// somebody's home.
func find(program string) (string, error) {
	for _, folder := range []string{"/usr/sbin", "/usr/bin"} {
		path, err := exec.LookPath(filepath.Join(folder, program))
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("servertest: %w", err)
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		debian := program
		if name, ok := packages[program]; ok {
			debian = name
		}
		return "", fmt.Errorf("servertest: there is no %s in /usr/sbin, /usr/bin and PATH: install it (on Debian: apt-get install %s)", program, debian)
	}
	return path, nil
}

// unprivileged returns the user for servers; nil: the present one. Started by root,
// each would become another user of its own choice, who cannot reach its folder.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("servertest: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("servertest: the id of nobody: %w", err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("servertest: the group of nobody: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
