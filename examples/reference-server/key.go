package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/surehook/surehook/sender"
)

const keySize = 32 // AES-256

// sealingKeys are the keys that encrypt secrets at rest, the newest first: those that were
// given, or those in a file beside the SQLite file, which is made at the first start. The
// id of each is a fingerprint, so that another key is told from the right one.
func sealingKeys(o options) ([]sender.SealingKey, error) {
	text, from := o.secretKey, "-secret-key"
	if text == "" {
		if o.postgres() {
			return nil, errors.New("-secret-key is missing: with PostgreSQL it must be given, 32 bytes in base64, the same to every process (openssl rand -base64 32 makes one)")
		}
		from = o.database + ".key"
		var err error
		if text, err = keyFile(from); err != nil {
			return nil, err
		}
	}
	var keys []sender.SealingKey
	seen := map[string]bool{}
	for i, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		key, err := base64.StdEncoding.DecodeString(word)
		if err != nil || len(key) != keySize {
			return nil, fmt.Errorf("the key from %s is not %d bytes in base64 (number %d of those that are there)", from, keySize, i+1)
		}
		sum := sha256.Sum256(key)
		id := hex.EncodeToString(sum[:4])
		if seen[id] {
			return nil, fmt.Errorf("the key from %s, number %d of those that are there, is among those before it: give each once", from, i+1)
		}
		seen[id] = true
		keys = append(keys, sender.SealingKey{ID: id, Key: key})
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("there is no key from %s: it must be %d bytes in base64", from, keySize)
	}
	return keys, nil
}

// keyFile reads the file, which it makes if there is none. If two processes start at
// once, one makes the whole file, and both read the same.
func keyFile(path string) (string, error) {
	text, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return string(text), err
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key)
	fresh, err := writeSynced(path, base64.StdEncoding.EncodeToString(key)+"\n")
	defer func() { _ = os.Remove(fresh) }() // also if the disk was full
	if err != nil {
		return "", err
	}
	if err := os.Link(fresh, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	text, err = os.ReadFile(path)
	return string(text), err
}

// writeSynced makes a file beside a path that only its owner may read, with a name of its own:
// a process that was killed here, or one in another container, can have the same process id.
// Nothing that is sealed with a key may reach the disk before the key does.
func writeSynced(beside, text string) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(beside), filepath.Base(beside)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	return f.Name(), errors.Join(err, f.Sync(), f.Close())
}
