package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/surehook/surehook/examples/surehook/verify"
)

// terminal is what a command reads from and prints to.
type terminal struct {
	in            io.Reader
	out, problems io.Writer
	env           func(string) string
	json          bool
	asks          bool // in is a person
	watched       bool // a person reads problems as they appear
	begun         bool // a line of progress is not ended
}

// encode prints a value as one line of JSON.
func (t *terminal) encode(v any) error {
	e := json.NewEncoder(t.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// say prints a line for people, which -json leaves out.
func (t *terminal) say(format string, args ...any) {
	if !t.json {
		fmt.Fprintln(t.out, printable(fmt.Sprintf(format, args...)))
	}
}

// note prints a line that is not the result.
func (t *terminal) note(format string, args ...any) {
	t.unfinished()
	fmt.Fprintln(t.problems, printable(fmt.Sprintf(format, args...)))
}

// progress replaces the line of progress, if somebody watches.
func (t *terminal) progress(format string, args ...any) {
	if t.watched {
		fmt.Fprintf(t.problems, "\r\x1b[K%s", printable(fmt.Sprintf(format, args...)))
		t.begun = true
	}
}

// unfinished takes the line of progress away.
func (t *terminal) unfinished() {
	if t.begun {
		fmt.Fprint(t.problems, "\r\x1b[K")
		t.begun = false
	}
}

// table prints rows in columns.
func (t *terminal) table(rows [][]string) {
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = printable(row[i])
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	_ = w.Flush() // as with every other print
}

// printable replaces what could control the terminal: much of what is printed was
// written by somebody else.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, text)
}

// counted is a number with the words for one and for others.
func counted(n int64, one, others string) string {
	if n == 1 {
		others = one
	}
	return fmt.Sprintf("%d %s", n, others)
}

// confirm asks a person a question. After any answer but a yes, the error says what was not
// done.
func (t *terminal) confirm(ctx context.Context, question, notDone string) error {
	if !t.asks || t.json {
		return errors.New(notDone + ": give -yes if it shall be done without a question")
	}
	fmt.Fprintf(t.problems, "%s [y/N] ", question)
	answered := make(chan string, 1)
	go func() { // it cannot be interrupted, and ends with the program
		line, _ := bufio.NewReader(t.in).ReadString('\n') // its end without an answer is a no
		answered <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answered:
		if a == "y" || a == "yes" {
			return nil
		}
	case <-ctx.Done():
		fmt.Fprintln(t.problems)
	}
	return no("%s", notDone)
}

// textFile reads a file with a secret in it, without the end of its line, and without the byte
// order mark that programs on Windows put in front.
func textFile(flagName, file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("-%s: %w", flagName, err)
	}
	if verify.IsUTF16(b) {
		return "", fmt.Errorf("-%s: %s is in UTF-16, as programs on Windows save files: save it as UTF-8", flagName, file)
	}
	text := strings.TrimSpace(strings.TrimPrefix(string(b), "\ufeff"))
	if text == "" {
		return "", fmt.Errorf("-%s: %s is empty", flagName, file)
	}
	return text, nil
}

// moment is a flag: a time, or how long ago.
type moment struct{ time.Time }

// Set implements flag.Value.
func (m *moment) Set(text string) error {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		m.Time = at
		return nil
	}
	unit := time.Duration(1)
	number := text
	if days, ok := strings.CutSuffix(text, "d"); ok {
		number, unit = days+"h", 24
	}
	ago, err := time.ParseDuration(number)
	if err != nil || ago < 0 || ago > 1<<62/unit {
		return fmt.Errorf("it must be a time such as 2026-01-31T12:00:00Z, or how long ago, such as 90m, 24h or 7d")
	}
	m.Time = time.Now().Add(-ago * unit)
	return nil
}

// String implements flag.Value.
func (m *moment) String() string {
	if m == nil || m.IsZero() {
		return ""
	}
	return m.UTC().Format(time.RFC3339Nano)
}

// clock is a time as it is printed.
func clock(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") }
