package pgtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
)

var errNoBinaries = errors.New("pgtest: there is no initdb in PATH nor in /usr/lib/postgresql/*/bin: " +
	"install PostgreSQL (on Debian: apt-get install postgresql), " +
	"or name a server in SUREHOOK_TEST_POSTGRES (postgres://user@host:5432/database)")

// binaries returns the folder of the newest installed release, or that of PATH.
func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", errNoBinaries
	}
	release := func(path string) int {
		n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		if err != nil { // 9.6 and older
			return 0
		}
		return n
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(release(a), release(b)) })
	return filepath.Dir(newest), nil
}

// account is a user of the system.
type account struct{ uid, gid uint32 }

// unprivileged returns the user for the server; nil: the present one. PostgreSQL
// refuses to run as root.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("pgtest: the id of user %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("pgtest: the group of user %s: %w", name, err)
		}
		return &account{uint32(uid), uint32(gid)}, nil
	}
	return nil, errors.New("pgtest: PostgreSQL does not run as root, and there is neither a user postgres nor nobody: run as another user")
}
