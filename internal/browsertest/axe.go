package browsertest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The version of axe-core, and the SHA-512 of its archive as the npm registry tells it.
const (
	axeVersion   = "4.14.1"
	axeIntegrity = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// axe is the source of axe-core, or "" if it cannot be had.
func axe(t *testing.T) string {
	t.Helper()
	source, err := axeSource(t)
	if err == nil {
		return source
	}
	if required("axe") {
		t.Fatalf("axe-core: %v", err)
	}
	t.Logf("SKIPPED: the audit by axe-core: %v", err)
	return ""
}

// axeSource has it from the cache, or else from the registry.
func axeSource(t *testing.T) (string, error) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	file := filepath.Join(cache, "surehook-tests", "axe-core-"+axeVersion+".tgz")
	archive, err := os.ReadFile(file)
	if err != nil {
		if archive, err = download(t); err != nil {
			return "", err
		}
	}
	if sum := sha512.Sum512(archive); base64.StdEncoding.EncodeToString(sum[:]) != axeIntegrity {
		return "", fmt.Errorf("the archive is not that of version %s: remove %s", axeVersion, file)
	}
	if err := keep(file, archive); err != nil {
		return "", err
	}
	return unpacked(archive, "package/axe.min.js")
}

func download(t *testing.T) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	if out, err := exec.CommandContext(ctx, "npm", "pack", "--silent", "--pack-destination", dir, "axe-core@"+axeVersion).CombinedOutput(); err != nil {
		return nil, errors.Join(err, errors.New(string(out)))
	}
	return os.ReadFile(filepath.Join(dir, "axe-core-"+axeVersion+".tgz"))
}

// keep writes a file that others may read meanwhile.
func keep(file string, b []byte) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "axe-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// unpacked is a file of a compressed archive.
func unpacked(archive []byte, name string) (string, error) {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return "", err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			return "", err
		}
		if h.Name == name {
			b, err := io.ReadAll(r)
			return string(b), err
		}
	}
}
