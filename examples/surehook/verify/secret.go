package verify

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/surehook/surehook/signing"
)

// namedText is the text of a secret and what it is called in the report.
type namedText struct {
	name, text string
}

func secretLines(file string) (texts []string, err error) {
	all, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(strings.TrimPrefix(string(all), mark)) {
		// White space beyond the line's end is left for the parser to complain of.
		if line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"); line != "" {
			texts = append(texts, line)
		}
	}
	if texts == nil {
		err = errors.New("there is no secret in it")
	}
	return texts, err
}

// keyring reads a secret in the way that its sender shows it.
func keyring(c candidate, n namedText) (*signing.Keyring, error) {
	read := signing.ParseSecret
	switch {
	case c.vendor.Name != "":
		read = c.vendor.Secret
	case c.name != "timestamp-body":
		read = signing.ParseTextSecret
	}
	secret, err := read(n.text)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be a secret of this scheme: %w", n.name, err)
	}
	return signing.NewKeyring(signing.Key{ID: n.name, Secret: secret})
}
