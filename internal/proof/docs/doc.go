// Package docs holds the code in the documentation to what it says. It has tests alone.
// They find every fenced block of README.md, AGENTS.md and docs/*.md, and the code in doc
// comments. They compile the Go, run the programs in other languages against signed
// requests, and fail for a block that no rule covers. Links within the repository lead
// somewhere. The rules are in rules_test.go.
package docs
