package runner_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/runner"
)

// maskedEnviron is a typical environment of a developer.
var maskedEnviron = []string{
	"OPENAI_API_KEY=sk-proj-" + strings.Repeat("Ab3_dE9x", 18), "ANTHROPIC_API_KEY=sk-ant-api03-" + strings.Repeat("xY7-qW2e", 11),
	"GEMINI_API_KEY=AIzaSyD4k3mX9qLwE7rT2vB8nM1cZ6pH5jF0gKs", "GITHUB_TOKEN=ghp_16C7e42F292c6912E7710c838347Ae178B4a",
	"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "NPM_TOKEN=npm_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5", "PATH=/usr/bin", "HOME=/home/user",
}

func maskedText() string {
	var b strings.Builder
	for i := 0; b.Len() < 64<<10; i++ {
		fmt.Fprintf(&b, `{"type":"item.completed","item":{"id":"item_%d","type":"command_execution","command":"bash -lc \"sed -n 1,200p src/main.go\"","aggregated_output":"package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {\n\tfmt.Println(\"hello, world\", os.Args)\n}\n","exit_code":0,"status":"completed"}}`+"\n", i)
	}
	return b.String()
}

func BenchmarkMaskWriter(b *testing.B) {
	text := []byte(maskedText())
	w := runner.NewMaskWriter(io.Discard, maskedEnviron)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = w.Write(text)
	}
}

func BenchmarkMaskWriterLine(b *testing.B) {
	text, _, _ := strings.Cut(maskedText(), "\n")
	line := []byte(text + "\n")
	w := runner.NewMaskWriter(io.Discard, maskedEnviron)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = w.Write(line)
	}
}

func BenchmarkMaskerText(b *testing.B) {
	text, _, _ := strings.Cut(maskedText(), "\n")
	m := runner.NewMasker(maskedEnviron)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		m.Text(text)
	}
}

func BenchmarkNewMasker(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		runner.NewMasker(maskedEnviron)
	}
}
