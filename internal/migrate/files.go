package migrate

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/surehook/surehook/internal/dberr"
)

type file struct {
	name string
	sql  string
}

var fileName = regexp.MustCompile(`^([0-9]{3,6})_[a-z0-9_]+\.sql$`)

// Files are those of a package that embeds its folder "migrations".
func Files(files embed.FS) fs.FS {
	sub, err := fs.Sub(files, "migrations")
	if err != nil { // only a malformed path, and this one is constant
		panic(err)
	}
	return sub
}

// read returns the files in order; the one at index i is version i+1.
func read(fsys fs.FS) ([]file, error) {
	entries, err := fs.ReadDir(fsys, ".") // sorted by name
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("there are no migrations")
	}
	var files []file
	for i, e := range entries {
		match := fileName.FindStringSubmatch(e.Name())
		if match == nil {
			return nil, fmt.Errorf("%q is not a migration: the name must be like 001_start.sql", e.Name())
		}
		if n, err := strconv.Atoi(match[1]); err != nil || n != i+1 {
			return nil, fmt.Errorf("%q comes where number %d must be: migrations are numbered from 1 without gaps", e.Name(), i+1)
		}
		text, err := fs.ReadFile(fsys, e.Name())
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: e.Name(), sql: string(text)})
	}
	return files, nil
}

// applying words the error of a file. One that makes what is there already was applied
// before, by somebody who did not record it.
func applying(name string, err error) error {
	if dberr.SQLState(err) == "42P07" || strings.Contains(err.Error(), "already exists") {
		return fmt.Errorf("%s: its tables are there already, and surehook_migrations does not have it: if you applied the files with a tool of your own, do not call Migrate, and have the tool run each file to its end, where it records itself: %w", name, err)
	}
	return wrap(name, err)
}
