package pgtest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPU is the CPU time of the server, with all of its connections that have ended, from
// /proc; 0 on systems without /proc.
func (s *Server) CPU() (used time.Duration) {
	const tick = time.Second / 100 // USER_HZ
	lines, err := os.ReadFile(filepath.Join(s.folder, "data", "postmaster.pid"))
	if err != nil {
		return 0
	}
	pid, _, _ := strings.Cut(string(lines), "\n")
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may have spaces in it
	fields := strings.Fields(rest)
	for _, of := range fields[min(11, len(fields)):min(15, len(fields))] { // utime, stime, cutime, cstime: proc(5)
		n, _ := strconv.ParseInt(of, 10, 64)
		used += time.Duration(n) * tick
	}
	return used
}
