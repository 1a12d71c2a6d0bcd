// Package systems holds that services can be built for other systems than the one that
// tests them. It is a module of its own, because it alone needs a loader of packages.
package systems_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// The types of everything are checked from source and without cgo, which takes a tenth of
// the time of building it.
func TestTypesOnOtherSystems(t *testing.T) {
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	for _, system := range []struct {
		name, os, arch string
	}{
		{"no Unix", "windows", "amd64"},
		{"another Unix and processor", "darwin", "arm64"},
		{"an int of 32 bits", "linux", "386"},
	} {
		t.Run(system.name, func(t *testing.T) {
			all, err := packages.Load(&packages.Config{
				Mode:  packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes,
				Dir:   root,
				Env:   append(os.Environ(), "GOOS="+system.os, "GOARCH="+system.arch, "CGO_ENABLED=0", "GOWORK="+filepath.Join(root, "go.work")),
				Tests: true,
			}, "./...", "./examples/...")
			require.NoError(t, err)
			require.Greater(t, len(all), 100, "packages")
			for p := range packages.Postorder(all) {
				for _, err := range p.Errors {
					t.Errorf("%s: %v", p.ID, err)
				}
			}
		})
	}
}
