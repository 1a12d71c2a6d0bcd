package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
)

// fileSuffix makes of a flag's name that of the flag which names a file with its value.
const fileSuffix = "-file"

// fromEnvironment sets the flags that were not given from the environment: the command
// line has the last word, also if it gives a file and the environment the value.
func fromEnvironment(f *flag.FlagSet, env func(string) (string, bool)) (errs []error) {
	set := map[string]bool{}
	f.Visit(func(fl *flag.Flag) { set[strings.TrimSuffix(fl.Name, fileSuffix)] = true })
	f.VisitAll(func(fl *flag.Flag) {
		name := "SUREHOOK_" + strings.ToUpper(strings.ReplaceAll(fl.Name, "-", "_"))
		value, ok := env(name)
		if !ok || set[strings.TrimSuffix(fl.Name, fileSuffix)] {
			return
		}
		if err := f.Set(fl.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("the environment variable %s is not one that -%s takes", name, fl.Name))
		}
	})
	// A shell makes one of a variable that is not set: the server would run, on another database or
	// on every address, or serve where a backup was asked for.
	f.Visit(func(fl *flag.Flag) {
		if fl.Value.String() == "" {
			errs = append(errs, fmt.Errorf("-%s is empty: leave it out, or give it a value", fl.Name))
		}
	})
	return errs
}

// readFiles reads the values that were given as files. An error tells of the file, and
// nothing that is in it.
func (g *given) readFiles() (errs []error) {
	for _, one := range []struct {
		flag, path string
		value      *string
	}{{"-database", g.databaseFile, &g.database}, {"-operator-token", g.tokenFile, &g.operatorToken}, {"-secret-key", g.secretKeyFile, &g.secretKey}} {
		if one.path == "" {
			continue
		}
		if *one.value != "" {
			errs = append(errs, fmt.Errorf("%s and %s%s are both given: give one of them", one.flag, one.flag, fileSuffix))
			continue
		}
		text, err := os.ReadFile(one.path)
		text = bytes.TrimPrefix(text, []byte("\ufeff")) // programs on Windows put it in front
		if err == nil && bytes.IndexByte(text, 0) >= 0 {
			err = fmt.Errorf("%s is in UTF-16, as programs on Windows save files: save it as UTF-8", one.path)
		}
		if err == nil && strings.TrimSpace(string(text)) == "" {
			err = fmt.Errorf("%s is empty", one.path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s%s: %w", one.flag, fileSuffix, err))
			continue
		}
		*one.value = strings.TrimSpace(string(text))
	}
	return errs
}
