package main

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// syncs counts the syncs of this process's files by SQLite since countSyncsOnce: one
// fsync or fdatasync each.
var syncs atomic.Int64

type (
	openFile func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	syncFile func(tls *libc.TLS, file uintptr, flags int32) int32
)

// countSyncsOnce wraps the method with which SQLite's VFS syncs a file. The first call
// must come before a database is opened; later ones do nothing.
var countSyncsOnce = sync.OnceFunc(countSyncs)

func countSyncs() {
	tls := libc.NewTLS()
	defer tls.Close()
	sqlite3.Xsqlite3_initialize(tls)
	vfs := (*sqlite3.Tsqlite3_vfs)(pointer(sqlite3.Xsqlite3_vfs_find(tls, 0)))
	open := *(*openFile)(unsafe.Pointer(&vfs.FxOpen))
	var mu sync.Mutex
	counted := map[uintptr]bool{} // tables of methods, which files of a kind share
	vfs.FxOpen = function(openFile(func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
		mu.Lock()
		defer mu.Unlock()
		rc := open(tls, vfs, name, file, flags, outFlags)
		table := (*sqlite3.Tsqlite3_file)(pointer(file)).FpMethods
		if table != 0 && !counted[table] {
			counted[table] = true
			methods := (*sqlite3.Tsqlite3_io_methods)(pointer(table))
			flush := *(*syncFile)(unsafe.Pointer(&methods.FxSync))
			methods.FxSync = function(syncFile(func(tls *libc.TLS, file uintptr, flags int32) int32 {
				syncs.Add(1)
				return flush(tls, file, flags)
			}))
		}
		return rc
	}))
}

// functions keeps the functions that SQLite refers to: the garbage collector does not
// see those references.
var functions []any

// function is fn in the form of SQLite's functions, which were translated from C.
func function[F any](fn F) uintptr {
	functions = append(functions, &fn)
	return *(*uintptr)(unsafe.Pointer(&fn))
}

// pointer turns a number from SQLite into a pointer.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
