package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/surehook/surehook/internal/proof/defect"
)

// table is the report in Markdown.
func (r *report) table() string {
	var b strings.Builder
	verdict := "Nothing failed."
	if r.Failed {
		verdict = "**Something failed.**"
	}
	fmt.Fprintf(&b, "%s %s UTC, commit %s, seed %d, %s of %s that were given. %d cores of %s, %s", verdict, r.Date, r.Commit, r.Seed, r.Took, r.Time, r.Cores, r.CPU, r.Go)
	if r.Postgres != "" {
		fmt.Fprintf(&b, ", PostgreSQL %s", r.Postgres)
	}
	b.WriteString(".\n\n| part | figure | |\n| --- | --- | --- |\n")
	for _, p := range r.Parts {
		for _, f := range p.Figures {
			fmt.Fprintf(&b, "| %s | %s | %v |\n", p.Part, f.Name, f.Value)
		}
		fmt.Fprintf(&b, "| %s | took | %s |\n", p.Part, p.Took)
		fmt.Fprintf(&b, "| %s | failures | %d |\n", p.Part, len(p.Failures))
	}
	planted := false
	for _, p := range r.Parts {
		for _, d := range p.Details {
			out, ok := d.(defect.Outcome)
			if !ok {
				continue
			}
			if !planted {
				b.WriteString("\n| planted | caught by |\n| --- | --- |\n")
				planted = true
			}
			fmt.Fprintf(&b, "| %s | %s |\n", out.Defect, catcher(out))
		}
	}
	if !r.Failed {
		return b.String()
	}
	b.WriteString("\nWhat failed:\n\n")
	for _, p := range r.Parts {
		for _, f := range p.Failures {
			fmt.Fprintf(&b, "- %s: %s", p.Part, strings.ReplaceAll(f.What, "\n", " "))
			if f.Repeat != "" {
				fmt.Fprintf(&b, " Again: `%s`", f.Repeat)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// catcher names the tests that found a defect, each without the path of the module.
func catcher(out defect.Outcome) string {
	if !out.Caught {
		return "**nothing**"
	}
	var by []string
	for _, test := range out.By {
		pkg, name, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(test, "github.com/surehook/surehook"), "/"), " ")
		by = append(by, strings.TrimSpace("`"+name+"` "+pkg))
	}
	return strings.Join(by, ", ")
}

// The marks in a page around the last report and, at its top, around the word that it failed.
const (
	begin        = "<!-- proof: begin; go run ./internal/proof -page TESTING.md writes this -->\n"
	end          = "<!-- proof: end -->\n"
	beginVerdict = "<!-- proof: verdict; if the last report's run failed it stands here -->\n"
	endVerdict   = "<!-- proof: verdict end -->\n"
)

// into puts the table into a page, between its marks. The top of the page tells of a run
// that failed, so that a failed report does not quietly replace a better one.
func (r *report) into(page string) error {
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text, err := between(string(b), beginVerdict, endVerdict, r.verdict())
	if err == nil {
		text, err = between(text, begin, end, "\n"+r.table()+"\n")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

// verdict returns the text for the top of the page: none if nothing failed.
func (r *report) verdict() string {
	if !r.Failed {
		return ""
	}
	return fmt.Sprintf("\n**The last run failed**, on %s UTC at commit %s: [the last report](#the-last-report) ends with what did.\n\n", r.Date, r.Commit)
}

// between replaces the part of a text between two marks.
func between(text, begin, end, by string) (changed string, err error) {
	before, rest, found := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("it lacks the lines between which the report goes:\n%s%s", begin, end)
	}
	return before + begin + by + end + after, nil
}
