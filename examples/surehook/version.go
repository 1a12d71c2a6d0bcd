package main

import (
	"context"
	"flag"
	"runtime"
	"runtime/debug"
)

func versionCommand() command {
	return command{
		name: "version", summary: "say which version this program is",
		about: `Prints the version of this program and of its library, which are released together, and the
version of Go that it was built with: put the line into a report of an error.`,
		example: "surehook version",
		flags: func(*flag.FlagSet) func(context.Context, *terminal, []string) error {
			return func(_ context.Context, t *terminal, _ []string) error {
				v := built{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
				if t.json {
					return t.encode(v)
				}
				t.say("surehook %s (%s, %s)", v.Version, v.Go, v.Platform)
				return nil
			}
		},
	}
}

type built struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// version is that of the module, as the Go command has stamped it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
