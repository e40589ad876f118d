package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A file is a file of an archive or package.
type file struct {
	name string // below the prefix of the installation, such as bin/bus-agent
	data []byte
	mode fs.FileMode
}

// readFile returns the file at source under another name.
func readFile(name, source string, mode fs.FileMode) (file, error) {
	data, err := os.ReadFile(source)
	return file{name, data, mode}, err
}

// documents returns the documentation of a product, whose module is in the folder dir of
// the tree: its pages and those about all products.
func documents(tree string, p product) (files []file, err error) {
	module := filepath.Join(tree, p.dir)
	add := func(root, path string) error {
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := readFile("share/doc/"+p.name+"/"+filepath.ToSlash(rel), path, 0o644)
		files = append(files, f)
		return err
	}
	for _, pattern := range []string{"CHANGELOG.md", "LICENSE*", "NOTICE*"} {
		found, err := filepath.Glob(filepath.Join(tree, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			if err := add(tree, path); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range []string{"README.md", "docs"} {
		err := filepath.WalkDir(filepath.Join(module, name), func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) || err == nil && d.IsDir() {
				return nil
			}
			if err != nil {
				return err
			}
			return add(module, path)
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// archive returns files in the folder dir, as a compressed tar archive that depends on
// nothing else.
func archive(dir string, files []file, modified time.Time) ([]byte, error) {
	var data bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&data, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: dir + "/" + f.name, Size: int64(len(f.data)), Mode: int64(f.mode),
			ModTime: modified, Uname: "root", Gname: "root",
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err = compressed.Close()
	return data.Bytes(), err
}

// checksums returns the SHA-256 of files, as sha256sum prints it.
func checksums(files []file) file {
	var text strings.Builder
	for _, f := range files {
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(f.data), f.name)
	}
	return file{"checksums.txt", []byte(text.String()), 0o644}
}
