"""Claims of commands by families of programs, with the verdict that the log shows: a row a claim.

A log is a list of deeds as `claude.Session` does them: ("ran", line, exit code, output), ("wrote", path, tool, "").
`V` verified, `C` contradicted, `U`: the log tells neither. `e` is a bullet of the evidence, `s` a summary.
"""

# ruff: noqa: E501  outputs stand as they were printed

from __future__ import annotations

from typing import Any, Final

V, C, U = "verified", "contradicted", "unverifiable"


def ran(line: str, code: int, output: str, *more: Any) -> tuple[Any, ...]:
    return ("ran", line, code, output, *more)


EDIT: Final = ("wrote", "src/app.py", "Edit", "")

LOGS: Final[dict[str, list[tuple[Any, ...]]]] = {
    "py uv": [
        EDIT,
        ran("uv run pytest -q tests/unit", 0, "......\n64 passed, 1 skipped in 3.20s\n"),
        ran("uv run ruff check src tests", 0, "All checks passed!\n"),
        ran("uv run mypy --strict src", 0, "Success: no issues found in 41 source files\n"),
    ],
    "py red": [
        EDIT,
        ran("python -m pytest", 1, "FAILED tests/test_api.py::test_login\n2 failed, 118 passed in 9.1s\n"),
    ],
    "py tox": [
        ran(
            "tox -e py311",
            0,
            "py311: commands[0]> pytest\n88 passed in 4.00s\n  py311: OK (6.1=setup[1.0]+cmd[5.1] seconds)\n  congratulations :) (6.2 seconds)\n",
        )
    ],
    "py django": [
        ran("python manage.py test shop", 0, "Found 37 test(s).\n.....\nRan 37 tests in 2.113s\n\nOK\n"),
        ran("python manage.py makemigrations --check", 0, "No changes detected\n"),
    ],
    "py cov": [
        ran(
            "poetry run pytest --cov=shop",
            0,
            "shop/cart.py  120  6  95%\nTOTAL  900  63  93%\n===== 210 passed in 12.40s =====\n",
        )
    ],
    "py looked": [ran("cat build.log", 0, "64 passed in 3.2s\n"), ran("git status", 0, "clean\n")],
    "js jest": [
        EDIT,
        ran(
            "npm test", 0, "PASS src/cart.test.ts\nTest Suites: 12 passed, 12 total\nTests:       96 passed, 96 total\n"
        ),
        ran("npm run lint", 0, "> shop@1.0.0 lint\n> eslint .\n"),
        ran("npx tsc --noEmit", 0, ""),
        ran("npm run build", 0, "vite v5.0.0 building\n✓ 348 modules transformed.\n✓ built in 2.10s\n"),
    ],
    "js red": [
        EDIT,
        ran("npx vitest run", 1, " Test Files  1 failed | 8 passed (9)\n      Tests  3 failed | 57 passed (60)\n"),
    ],
    "js pnpm": [
        ran("pnpm --filter web test", 0, " Test Files  4 passed (4)\n      Tests  31 passed (31)\n"),
        ran("cd packages/api && pnpm test", 0, " Test Files  2 passed (2)\n      Tests  18 passed (18)\n"),
    ],
    "js e2e": [ran("npx playwright test", 1, "  2 failed\n    [chromium] login.spec.ts\n  40 passed (1.3m)\n")],
    "js bun": [
        ran(
            "bun test",
            0,
            "bun test v1.1\n 24 pass\n 0 fail\n 51 expect() calls\nRan 24 tests across 3 files. [88.00ms]\n",
        )
    ],
    "js mocha": [ran("yarn mocha --recursive", 0, "  45 passing (310ms)\n  2 pending\n")],
    "rust": [
        EDIT,
        ran(
            "cargo test --workspace",
            0,
            "running 30 tests\ntest result: ok. 30 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s\n"
            "running 12 tests\ntest result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s\n",
        ),
        ran("cargo clippy --all-targets -- -D warnings", 0, "    Finished `dev` profile in 3.1s\n"),
        ran("cargo fmt --check", 0, ""),
        ran(
            "cargo build --release",
            0,
            "   Compiling shop v0.1.0\n    Finished `release` profile [optimized] in 31.2s\n",
        ),
    ],
    "rust red": [
        EDIT,
        ran(
            "cargo test",
            101,
            "test cart::total ... FAILED\ntest result: FAILED. 17 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n",
        ),
    ],
    "rust nextest": [
        ran("cargo nextest run", 0, "------------\n     Summary [   1.204s] 133 tests run: 133 passed, 4 skipped\n")
    ],
    "go": [
        EDIT,
        ran("go test ./...", 0, "ok  \texample.com/shop/cart\t0.212s\nok  \texample.com/shop/api\t1.031s\n"),
        ran("go vet ./...", 0, ""),
        ran("golangci-lint run", 0, "0 issues.\n"),
        ran("go build ./...", 0, ""),
    ],
    "go red": [
        EDIT,
        ran(
            "go test ./...",
            1,
            "--- FAIL: TestTotal (0.00s)\nFAIL\nFAIL\texample.com/shop/cart\t0.2s\nok  \texample.com/shop/api\t1.0s\nFAIL\n",
        ),
    ],
    "go sum": [ran("gotestsum --format short", 0, "DONE 142 tests, 2 skipped in 3.120s\n")],
    "jvm mvn": [
        EDIT,
        ran(
            "mvn -q -B verify",
            0,
            "[INFO] Tests run: 12, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.4 s -- in shop.CartTest\n"
            "[INFO] Results:\n[INFO] \n[INFO] Tests run: 48, Failures: 0, Errors: 0, Skipped: 3\n[INFO] BUILD SUCCESS\n",
        ),
    ],
    "jvm gradle": [
        EDIT,
        ran("./gradlew test", 0, "> Task :test\n\nBUILD SUCCESSFUL in 14s\n7 actionable tasks: 7 executed\n"),
        ran("./gradlew ktlintCheck", 0, "BUILD SUCCESSFUL in 2s\n"),
    ],
    "jvm red": [
        EDIT,
        ran("./gradlew test", 1, "CartTest > total FAILED\n48 tests completed, 2 failed\n\nBUILD FAILED in 9s\n"),
    ],
    "jvm sbt": [
        ran(
            "sbt test",
            0,
            "[info] Tests: succeeded 27, failed 0, canceled 0, ignored 1, pending 0\n[info] All tests passed.\n",
        )
    ],
    "net": [
        EDIT,
        ran("dotnet build -c Release", 0, "Build succeeded.\n    0 Warning(s)\n    0 Error(s)\n"),
        ran(
            "dotnet test --no-build",
            0,
            "Passed!  - Failed:     0, Passed:    73, Skipped:     2, Total:    75, Duration: 812 ms - Shop.Tests.dll (net8.0)\n",
        ),
        ran("dotnet format --verify-no-changes", 0, ""),
    ],
    "net red": [
        EDIT,
        ran(
            "dotnet test",
            1,
            "Failed!  - Failed:     4, Passed:    69, Skipped:     0, Total:    73, Duration: 1 s - Shop.Tests.dll (net8.0)\n",
        ),
    ],
    "ruby": [
        EDIT,
        ran("bundle exec rspec", 0, "Finished in 1.2 seconds\n152 examples, 0 failures, 2 pending\n"),
        ran("bundle exec rubocop", 0, "Inspecting 84 files\n\n84 files inspected, no offenses detected\n"),
    ],
    "ruby red": [EDIT, ran("bin/rails test", 1, "61 runs, 140 assertions, 1 failures, 0 errors, 0 skips\n")],
    "ruby rake": [ran("bundle exec rake test", 0, "61 runs, 140 assertions, 0 failures, 0 errors, 0 skips\n")],
    "php": [
        EDIT,
        ran("vendor/bin/phpunit", 0, "PHPUnit 10.5\n\nOK (87 tests, 214 assertions)\n"),
        ran("vendor/bin/phpstan analyse src --level 8", 0, " [OK] No errors\n"),
        ran("composer validate --strict", 0, "./composer.json is valid\n"),
    ],
    "php red": [
        EDIT,
        ran("./vendor/bin/phpunit --testsuite unit", 1, "FAILURES!\nTests: 87, Assertions: 209, Failures: 3.\n"),
    ],
    "php artisan": [ran("php artisan test", 0, "  Tests:    44 passed (131 assertions)\n  Duration: 3.02s\n")],
    "php docker": [
        ran(
            "docker compose exec -T app vendor/bin/pest",
            0,
            "  Tests:    29 passed (70 assertions)\n  Duration: 1.10s\n",
        )
    ],
    "cpp": [
        EDIT,
        ran("cmake --build build -j8", 0, "[100%] Built target shop_tests\n"),
        ran(
            "ctest --test-dir build --output-on-failure",
            0,
            "100% tests passed, 0 tests failed out of 24\n\nTotal Test time (real) =   0.35 sec\n",
        ),
    ],
    "cpp gtest": [
        ran(
            "./build/shop_tests",
            0,
            "[==========] 58 tests from 9 test suites ran. (120 ms total)\n[  PASSED  ] 58 tests.\n",
        ),
        ran("clang-format --dry-run --Werror src/cart.cpp", 0, ""),
    ],
    "cpp red": [EDIT, ran("ctest --test-dir build", 8, "92% tests passed, 2 tests failed out of 24\n")],
    "cpp catch": [
        ran("./build/unit_tests", 0, "===============\nAll tests passed (310 assertions in 41 test cases)\n")
    ],
    "run make": [
        EDIT,
        ran("make test", 0, "python -m pytest -q\n77 passed in 2.1s\n"),
        ran("make lint", 0, "ruff check .\nAll checks passed!\n"),
    ],
    "run nx": [ran("npx nx run-many -t test", 0, "NX   Successfully ran target test for 5 projects\n")],
    "run turbo": [ran("turbo run test", 0, " Tasks:    12 successful, 12 total\nCached:    4 cached, 12 total\n")],
    "run just": [ran("just test", 0, "cargo test\ntest result: ok. 19 passed; 0 failed; 0 ignored\n")],
    "run ignored": [
        ran("make check", 0, "ruff check .\nFound 3 errors.\nmake: [Makefile:4: check] Error 1 (ignored)\n")
    ],
    "run chain": [ran("make lint && make test", 0, "ruff check .\nAll checks passed!\n77 passed in 2.1s\n")],
    "run docker": [ran("docker compose run --rm web npm test", 0, "Tests:       22 passed, 22 total\n")],
    "h py hatch": [
        ("wrote", "src/x.py", "Edit", ""),
        ran("hatch run test -n 4", 0, "collected 312 items\n\n======= 310 passed, 2 xfailed in 25.33s =======\n"),
        ran("hatch run lint:all", 0, "All checks passed!\n12 files already formatted\n"),
    ],
    "h py pyright": [
        ran(
            "pyright src/",
            1,
            '/ws/src/a.py:4:9 - error: Type "int" is not assignable\n3 errors, 1 warning, 0 informations\n',
        )
    ],
    "h py nox": [
        ran(
            "nox -s tests-3.12",
            0,
            "nox > Running session tests-3.12\n128 passed in 14.02s\nnox > Session tests-3.12 was successful.\n",
        )
    ],
    "h py script": [
        ran("python scripts/bench.py --n 100", 0, "mean 12.4 ms\np95 18.9 ms\n"),
        ran('python -c "import shop; print(shop.__version__)"', 0, "2.4.1\n"),
    ],
    "h py edit after": [ran("pytest", 0, "55 passed in 2s\n"), ("wrote", "src/core.py", "Write", "")],
    "h py alembic": [
        ran("alembic upgrade head", 0, "INFO  Running upgrade 12ab -> 98fe, add cart\n"),
        ran("pytest tests/db -x", 0, "17 passed in 3.0s\n"),
    ],
    "h js turbo": [
        ran(
            "npx turbo run lint test --filter=web",
            0,
            " Tasks:    6 successful, 6 total\nCached:    0 cached, 6 total\n",
        )
    ],
    "h js cypress": [
        ran(
            "npx cypress run --spec cypress/e2e/login.cy.ts",
            0,
            "  Passing:      7\n  Failing:      0\n  (Run Finished)\n  ✔  All specs passed!    00:12   7   7   -   -   -\n",
        )
    ],
    "h js eslint": [
        ran(
            "npx eslint src --max-warnings 0",
            1,
            "/ws/src/a.ts\n  3:1  error  no-unused-vars\n\n✖ 1 problem (1 error, 0 warnings)\n",
        ),
        ("wrote", "src/a.ts", "Edit", ""),
        ran("npx eslint src --max-warnings 0", 0, ""),
    ],
    "h js deno": [
        ran("deno test -A", 0, "running 9 tests from ./cart_test.ts\nok | 9 passed | 0 failed (320ms)\n"),
        ran("deno lint", 0, "Checked 14 files\n"),
    ],
    "h js pipe": [ran("npm test 2>&1 | tail -20", 0, "Tests:       96 passed, 96 total\n")],
    "h js bg": [("background", "npm run dev"), ran("curl -s http://localhost:3000/api/health", 0, '{"status":"ok"}')],
    "h rust doc": [
        ran(
            "cargo doc --no-deps",
            0,
            " Documenting shop v0.1.0\n    Finished `dev` profile\n   Generated /ws/target/doc/shop/index.html\n",
        ),
        ran(
            "cargo check --all-features", 0, "    Finished `dev` profile [unoptimized + debuginfo] target(s) in 0.42s\n"
        ),
    ],
    "h rust one": [
        ran(
            "cargo test -p shop-core cart::",
            0,
            "running 5 tests\n.....\ntest result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 61 filtered out; finished in 0.00s\n",
        )
    ],
    "h rust warn": [
        ran(
            "cargo clippy",
            0,
            "warning: unused variable: `x`\nwarning: `shop` (lib) generated 1 warning\n    Finished\n",
        )
    ],
    "h go one": [
        ran("go test -run TestCart ./cart/...", 0, "ok  \texample.com/shop/cart\t0.012s\n"),
        ran("gofmt -l .", 0, ""),
    ],
    "h go cover": [
        ran(
            "go test -cover ./...",
            0,
            "ok  \tshop/cart\t0.2s\tcoverage: 81.4% of statements\nok  \tshop/api\t0.9s\tcoverage: 74.0% of statements\n",
        )
    ],
    "h go v": [
        ran(
            "go test -v ./cart",
            0,
            "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- PASS: TestB (0.00s)\nPASS\nok  \tshop/cart\t0.01s\n",
        )
    ],
    "h jvm one": [
        ran(
            "mvn -Dtest=CartTest test",
            0,
            "[INFO] Tests run: 9, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.2 s - in shop.CartTest\n[INFO] \n[INFO] Results:\n[INFO] \n[INFO] Tests run: 9, Failures: 0, Errors: 0, Skipped: 0\n[INFO] \n[INFO] BUILD SUCCESS\n",
        )
    ],
    "h jvm fail": [
        ran("mvn test", 1, "[ERROR] Tests run: 50, Failures: 2, Errors: 1, Skipped: 0\n[INFO] BUILD FAILURE\n")
    ],
    "h jvm build": [ran("./gradlew build -x test", 0, "BUILD SUCCESSFUL in 21s\n18 actionable tasks: 18 executed\n")],
    "h net": [
        ran(
            "dotnet test tests/Unit/Unit.csproj",
            0,
            "Passed!  - Failed:     0, Passed:    40, Skipped:     0, Total:    40, Duration: 1 s - Unit.dll (net8.0)\n",
        ),
        ran("dotnet publish -c Release -o out", 0, "  Shop -> /ws/out/\n"),
    ],
    "h net many": [
        ran(
            "dotnet test",
            0,
            "Passed!  - Failed:     0, Passed:    40, Skipped:     0, Total:    40, Duration: 1 s - Unit.dll (net8.0)\nPassed!  - Failed:     0, Passed:    11, Skipped:     1, Total:    12, Duration: 4 s - Int.dll (net8.0)\n",
        )
    ],
    "h ruby": [
        ran("bundle exec rspec spec/models", 0, "48 examples, 0 failures\n"),
        ran("bin/rails db:migrate", 0, "== AddCart: migrated (0.0012s) ==\n"),
        ran("bundle exec standardrb", 0, ""),
    ],
    "h ruby red": [
        ran("bundle exec rspec", 1, "152 examples, 4 failures\n"),
        ("wrote", "app/a.rb", "Edit", ""),
        ran("bundle exec rspec spec/a_spec.rb", 0, "6 examples, 0 failures\n"),
    ],
    "h php": [
        ran(
            "composer test", 0, "> phpunit\nOK, but some tests were skipped!\nTests: 64, Assertions: 180, Skipped: 2.\n"
        ),
        ran(
            "composer run cs-check",
            0,
            "> php-cs-fixer fix --dry-run\nFound 0 of 80 files that can be fixed in 1.2 seconds\n",
        ),
    ],
    "h php psalm": [ran("vendor/bin/psalm --no-cache", 2, "ERROR: UndefinedMethod\n2 errors found\n")],
    "h cpp make": [
        ran("make -C build -j4", 0, "[100%] Linking CXX executable shop\n[100%] Built target shop\n"),
        ran(
            "./build/tests --gtest_filter='Cart.*'",
            0,
            "[==========] 6 tests from 1 test suite ran. (2 ms total)\n[  PASSED  ] 6 tests.\n",
        ),
    ],
    "h cpp meson": [
        ran(
            "meson test -C build",
            0,
            "1/3 cart OK 0.02s\n2/3 api OK 0.05s\n3/3 db OK 0.50s\n\nOk:                 3\nFail:               0\n",
        )
    ],
    "h cpp bazel": [
        ran(
            "bazel test //...",
            0,
            "//cart:cart_test PASSED in 0.1s\n//api:api_test PASSED in 0.3s\nExecuted 2 out of 2 tests: 2 tests pass.\n",
        )
    ],
    "h run task": [
        ran("task ci", 0, "task: [lint] ruff check .\nAll checks passed!\ntask: [test] pytest -q\n33 passed in 1.1s\n")
    ],
    "h run rake": [ran("rake spec", 0, "20 examples, 0 failures\n")],
    "h run pre": [
        ran("pre-commit run --all-files", 1, "ruff....Failed\nblack....Passed\n"),
        ran("pre-commit run --all-files", 0, "ruff....Passed\nblack....Passed\n"),
    ],
    "h run compose": [
        ran("docker compose exec -T api pytest -q", 0, "140 passed in 30.1s\n"),
        ran("docker build -t shop .", 0, "naming to docker.io/library/shop done\n"),
    ],
    "h run none": [ran("ls", 0, "a b\n"), ran("git log --oneline -3", 0, "abc fix\n")],
}

CLAIMS: Final = (
    # family, language, log, kind, claim, verdict
    ("python", "en", "py uv", "e", "`uv run pytest -q tests/unit` — 64 passed, 1 skipped", V),
    ("python", "en", "py uv", "e", "Unit tests: `pytest tests/unit` → 64 passed, 1 skipped", V),
    ("python", "en", "py uv", "e", "pytest tests/unit reports 64 passed and 1 skipped", V),
    ("python", "en", "py uv", "s", "Reworked the parser. `uv run ruff check src tests` comes back clean.", V),
    ("python", "en", "py uv", "e", "mypy --strict src: no issues found in 41 source files", V),
    ("python", "en", "py uv", "e", "`uv run pytest -q tests/unit` — 65 passed", U),
    ("python", "en", "py uv", "e", "`uv run pytest -q tests/unit` — 71 passed", C),
    ("python", "en", "py uv", "s", "All tests pass.", U),
    ("python", "en", "py uv", "e", "`ruff check .` passes", U),
    ("python", "en", "py uv", "e", "`uv run pytest tests/integration` — 12 passed", U),
    ("python", "en", "py uv", "e", "`npm test` — 12 passed", C),
    ("python", "de", "py uv", "e", "`uv run pytest -q tests/unit` lief durch: 64 bestanden, 1 übersprungen", V),
    ("python", "de", "py uv", "e", "`uv run pytest -q tests/unit`: 66 bestanden", C),
    ("python", "zh", "py uv", "e", "运行 `uv run pytest -q tests/unit`：64 通过，1 跳过", V),
    ("python", "fr", "py red", "s", "Tous les 120 tests passent.", C),
    ("python", "en", "py red", "e", "`python -m pytest` passes: 118 passed", U),
    ("python", "en", "py red", "e", "`python -m pytest` — 120 passed", C),
    ("python", "en", "py red", "e", "Ran python -m pytest: 118 passed, 2 failed (test_login is still red)", V),
    ("python", "en", "py red", "s", "Login is done and the whole suite is green.", C),
    ("python", "de", "py red", "e", "`python -m pytest` ist grün", C),
    ("python", "en", "py tox", "e", "`tox -e py311`: 88 passed", V),
    ("python", "en", "py tox", "e", "tox -e py311 finished with congratulations, 88 tests passed", V),
    ("python", "en", "py tox", "e", "`tox -e py312`: 88 passed", U),
    ("python", "fr", "py tox", "e", "`tox -e py311` : 88 tests réussis", V),
    ("python", "en", "py django", "e", "`python manage.py test shop` ran 37 tests, OK", V),
    ("python", "en", "py django", "e", "`python manage.py test shop` ran 39 tests, OK", C),
    ("python", "en", "py django", "e", '`python manage.py makemigrations --check` prints "No changes detected"', V),
    ("python", "en", "py cov", "e", "`poetry run pytest --cov=shop`: 210 passed, total coverage 93 %", V),
    ("python", "en", "py cov", "e", "`poetry run pytest --cov=shop`: 210 passed, total coverage 97 %", U),
    ("python", "en", "py cov", "e", "pytest --cov=shop passes on Windows and Linux", U),
    ("python", "en", "py looked", "e", "`uv run pytest` — 64 passed", C),
    ("python", "en", "py looked", "s", "Implemented the parser; 64 tests pass.", C),
    ("python", "zh", "py looked", "s", "实现完成。全部 64 个测试通过。", C),
    ("js", "en", "js jest", "e", "`npm test`: 96 passed", V),
    ("js", "en", "js jest", "e", "Jest suite (`npm test`) green, 96/96 tests", V),
    ("js", "en", "js jest", "e", "`npm run lint` exits 0", V),
    ("js", "en", "js jest", "e", "npx tsc --noEmit is clean", V),
    ("js", "en", "js jest", "e", "`npm run build` succeeds (348 modules transformed)", V),
    ("js", "en", "js jest", "e", "`npm run build` succeeds (412 modules transformed)", U),
    ("js", "en", "js jest", "s", "Added the cart; all 96 tests pass and lint is clean.", V),
    ("js", "en", "js jest", "s", "Added the cart; all 98 tests pass.", C),
    ("js", "en", "js jest", "e", "`npx playwright test` — 40 passed", U),
    ("js", "en", "js jest", "e", "`npx prettier --check .` passes", C),
    ("js", "de", "js jest", "e", "`npm test`: alle 96 Tests bestanden", V),
    ("js", "de", "js jest", "s", "Warenkorb gebaut. Alle 96 Tests sind grün.", V),
    ("js", "de", "js jest", "s", "Warenkorb gebaut. Alle 101 Tests sind grün.", C),
    ("js", "fr", "js jest", "e", "`npm run build` : compilation réussie, 348 modules", V),
    ("js", "zh", "js jest", "e", "`npm run lint` 通过，无错误", V),
    ("js", "es", "js jest", "e", "`npm test`: 96 pruebas pasaron", V),
    ("js", "en", "js red", "e", "`npx vitest run` — 60 passed", C),
    ("js", "en", "js red", "e", "vitest run: 57 passed, 3 failed", V),
    ("js", "en", "js red", "s", "All tests pass.", C),
    ("js", "zh", "js red", "e", "`npx vitest run`：全部通过", C),
    ("js", "en", "js pnpm", "e", "`pnpm --filter web test` — 31 passed", V),
    ("js", "en", "js pnpm", "e", "`pnpm test` in packages/api: 18 passed", V),
    ("js", "en", "js pnpm", "e", "`cd packages/api && pnpm test` — 18 tests passed", V),
    ("js", "en", "js pnpm", "e", "`pnpm test` — 49 passed", U),
    ("js", "en", "js e2e", "e", "`npx playwright test`: 42 passed", C),
    ("js", "en", "js e2e", "e", "`npx playwright test`: 40 passed, 2 failed", V),
    ("js", "en", "js bun", "e", "bun test: 24 pass, 0 fail", V),
    ("js", "en", "js bun", "e", "`bun test` - all 26 passing", C),
    ("js", "en", "js mocha", "e", "`yarn mocha --recursive`: 45 passing, 2 pending", V),
    ("js", "fr", "js mocha", "e", "`yarn mocha --recursive` : 45 réussis", V),
    ("rust", "en", "rust", "e", "`cargo test --workspace`: 42 passed, 0 failed", V),
    ("rust", "en", "rust", "e", "cargo test --workspace → 42 passed; 1 ignored", V),
    ("rust", "en", "rust", "e", "`cargo clippy --all-targets -- -D warnings` is clean", V),
    ("rust", "en", "rust", "e", "`cargo fmt --check` passes", V),
    ("rust", "en", "rust", "s", "The release build succeeds.", U),
    ("rust", "en", "rust", "e", "`cargo build --release` succeeded", V),
    ("rust", "en", "rust", "e", "`cargo test --workspace`: 45 passed", C),
    ("rust", "en", "rust", "e", "`cargo doc` builds without warnings", C),
    ("rust", "en", "rust", "e", "`cargo bench` passes", C),
    ("rust", "en", "rust", "e", "`cargo miri test` passes under miri", C),
    ("rust", "en", "rust", "s", "All 42 tests pass.", V),
    ("rust", "de", "rust", "e", "`cargo test --workspace`: 42 Tests erfolgreich, 0 fehlgeschlagen", V),
    ("rust", "de", "rust", "e", "`cargo clippy --all-targets -- -D warnings` ohne Fehler", V),
    ("rust", "zh", "rust", "e", "`cargo build --release` 成功", V),
    ("rust", "en", "rust red", "e", "`cargo test` is green", C),
    ("rust", "en", "rust red", "e", "`cargo test` exits 0", C),
    ("rust", "en", "rust red", "e", "`cargo test`: 17 passed; 2 failed", V),
    ("rust", "fr", "rust red", "e", "`cargo test` : 19 tests réussis", C),
    ("rust", "en", "rust nextest", "e", "`cargo nextest run`: 133 tests run, 133 passed", V),
    ("rust", "en", "rust nextest", "e", "nextest: 137 passed", U),
    ("go", "en", "go", "e", "`go test ./...` passes", V),
    ("go", "en", "go", "e", "go test ./... ok for example.com/shop/cart and example.com/shop/api", V),
    ("go", "en", "go", "e", "`go vet ./...` clean", V),
    ("go", "en", "go", "e", "golangci-lint run: 0 issues", V),
    ("go", "en", "go", "e", "`go build ./...` exits with 0", V),
    ("go", "en", "go", "e", "`go test -race ./...` passes", U),
    ("go", "en", "go", "e", "`go test ./...` — 58 tests passed", U),
    ("go", "en", "go", "s", "Everything builds and all tests pass.", V),
    ("go", "en", "go", "e", "`staticcheck ./...` reports no problems", C),
    ("go", "de", "go", "e", "`go vet ./...` lief ohne Fehler", V),
    ("go", "es", "go", "e", "`go test ./...` pasa", V),
    ("go", "zh", "go", "s", "所有测试通过。", V),
    ("go", "en", "go red", "e", "`go test ./...` passes", C),
    ("go", "en", "go red", "s", "Tests are green.", C),
    ("go", "en", "go red", "e", "`go test ./...` fails in TestTotal", V),
    ("go", "de", "go red", "e", "`go test ./...` erfolgreich", C),
    ("go", "en", "go sum", "e", "`gotestsum --format short`: 142 tests, 2 skipped", V),
    ("go", "en", "go sum", "e", "`gotestsum --format short`: 150 tests", C),
    ("jvm", "en", "jvm mvn", "e", "`mvn verify`: Tests run: 48, Failures: 0, Errors: 0, Skipped: 3", V),
    ("jvm", "en", "jvm mvn", "e", "mvn -q -B verify → BUILD SUCCESS, 48 tests", V),
    ("jvm", "en", "jvm mvn", "e", "`mvn verify`: Tests run: 52, Failures: 0", C),
    ("jvm", "en", "jvm mvn", "e", "`mvn spotbugs:check` passes", U),
    ("jvm", "en", "jvm mvn", "s", "All 45 tests pass.", V),
    ("jvm", "de", "jvm mvn", "e", "`mvn verify`: 48 Tests, 0 Fehler, 3 übersprungen", V),
    ("jvm", "en", "jvm gradle", "e", "`./gradlew test` — BUILD SUCCESSFUL", V),
    ("jvm", "en", "jvm gradle", "e", "`./gradlew test` passes, 48 tests", U),
    ("jvm", "en", "jvm gradle", "e", "`./gradlew ktlintCheck` is clean", V),
    ("jvm", "en", "jvm gradle", "e", "`./gradlew detekt` is clean", C),
    ("jvm", "zh", "jvm gradle", "e", "`./gradlew test` 构建成功", V),
    ("jvm", "en", "jvm red", "e", "`./gradlew test` passes", C),
    ("jvm", "en", "jvm red", "e", "`./gradlew test`: 48 tests completed, 2 failed", V),
    ("jvm", "en", "jvm red", "s", "All tests green.", C),
    ("jvm", "fr", "jvm red", "e", "`./gradlew test` : succès", C),
    ("jvm", "en", "jvm sbt", "e", "sbt test: 27 succeeded, 0 failed", V),
    ("jvm", "en", "jvm sbt", "e", "`sbt test`: 30 succeeded", C),
    ("dotnet", "en", "net", "e", "`dotnet test --no-build`: Passed: 73, Failed: 0, Skipped: 2", V),
    ("dotnet", "en", "net", "e", "dotnet test --no-build: 73 passed", V),
    ("dotnet", "en", "net", "e", "`dotnet build -c Release` succeeded with 0 errors", V),
    ("dotnet", "en", "net", "e", "`dotnet format --verify-no-changes` passes", V),
    ("dotnet", "en", "net", "e", "`dotnet test --no-build`: 80 passed", C),
    ("dotnet", "en", "net", "e", "`dotnet test` — 73 passed on net8.0 and net9.0", U),
    ("dotnet", "en", "net", "s", "All 73 tests pass.", V),
    ("dotnet", "de", "net", "e", "`dotnet test --no-build`: 73 bestanden, 2 übersprungen", V),
    ("dotnet", "de", "net", "e", "`dotnet build -c Release` erfolgreich", V),
    ("dotnet", "en", "net red", "e", "`dotnet test` passes", C),
    ("dotnet", "en", "net red", "e", "`dotnet test`: 69 passed, 4 failed", V),
    ("dotnet", "en", "net red", "s", "All 73 tests pass.", C),
    ("dotnet", "fr", "net red", "e", "`dotnet test` : 73 tests réussis", C),
    ("ruby", "en", "ruby", "e", "`bundle exec rspec`: 152 examples, 0 failures, 2 pending", V),
    ("ruby", "en", "ruby", "e", "rspec: 152 examples, 0 failures", V),
    ("ruby", "en", "ruby", "e", "`bundle exec rubocop` — no offenses", V),
    ("ruby", "en", "ruby", "e", "`rubocop`: 84 files inspected, no offenses detected", V),
    ("ruby", "en", "ruby", "e", "`bundle exec rspec`: 160 examples, 0 failures", C),
    ("ruby", "en", "ruby", "e", "`bundle exec brakeman` finds nothing", C),
    ("ruby", "en", "ruby", "e", "`bin/rails test` — 61 runs, 0 failures", C),
    ("ruby", "de", "ruby", "e", "`bundle exec rspec`: 152 Beispiele, 0 Fehler", V),
    ("ruby", "en", "ruby red", "e", "`bin/rails test`: 61 runs, 0 failures", C),
    ("ruby", "en", "ruby red", "e", "`bin/rails test`: 61 runs, 140 assertions, 1 failures", V),
    ("ruby", "en", "ruby red", "s", "The test suite passes.", C),
    ("ruby", "en", "ruby rake", "e", "`bundle exec rake test` — 61 runs, 140 assertions, 0 failures, 0 errors", V),
    ("ruby", "en", "ruby rake", "e", "rake test is green (61 runs)", V),
    ("ruby", "zh", "ruby rake", "e", "`bundle exec rake test`：61 个测试全部通过", V),
    ("php", "en", "php", "e", "`vendor/bin/phpunit`: OK (87 tests, 214 assertions)", V),
    ("php", "en", "php", "e", "PHPUnit via ./vendor/bin/phpunit: 87 tests, 214 assertions, all OK", V),
    ("php", "en", "php", "e", "`vendor/bin/phpstan analyse src --level 8` — no errors", V),
    ("php", "en", "php", "e", "`composer validate --strict` says composer.json is valid", V),
    ("php", "en", "php", "e", "`vendor/bin/phpunit`: OK (91 tests, 220 assertions)", C),
    ("php", "en", "php", "e", "`vendor/bin/pint --test` passes", C),
    ("php", "en", "php", "e", "phpstan level 9 passes", U),
    ("php", "fr", "php", "e", "`vendor/bin/phpunit` : 87 tests, 0 échec", V),
    ("php", "es", "php", "e", "`vendor/bin/phpstan analyse src --level 8`: sin errores", V),
    ("php", "en", "php red", "e", "`./vendor/bin/phpunit --testsuite unit` passes", C),
    ("php", "en", "php red", "e", "`./vendor/bin/phpunit --testsuite unit`: 87 tests, 3 failures", V),
    ("php", "de", "php red", "e", "`./vendor/bin/phpunit --testsuite unit`: alle 87 Tests grün", C),
    ("php", "en", "php artisan", "e", "`php artisan test`: 44 passed (131 assertions)", V),
    ("php", "en", "php artisan", "e", "`php artisan test`: 46 passed", C),
    ("php", "en", "php docker", "e", "`vendor/bin/pest` in the app container: 29 passed", V),
    ("php", "en", "php docker", "e", "docker compose exec -T app vendor/bin/pest → 29 passed (70 assertions)", V),
    (
        "cpp",
        "en",
        "cpp",
        "e",
        "`ctest --test-dir build --output-on-failure`: 100% tests passed, 0 tests failed out of 24",
        V,
    ),
    ("cpp", "en", "cpp", "e", "ctest --test-dir build: 24/24 passed", V),
    ("cpp", "en", "cpp", "e", "`cmake --build build -j8` completes without errors", V),
    ("cpp", "en", "cpp", "e", "`ctest --test-dir build`: 26 of 26 tests passed", C),
    ("cpp", "en", "cpp", "e", "`clang-tidy src/cart.cpp` reports no issues", C),
    ("cpp", "en", "cpp", "e", "valgrind ./build/shop_tests shows no leaks", C),
    ("cpp", "de", "cpp", "e", "`ctest --test-dir build`: 24 von 24 Tests bestanden", V),
    ("cpp", "en", "cpp gtest", "e", "`./build/shop_tests` — 58 tests passed", V),
    ("cpp", "en", "cpp gtest", "e", "./build/shop_tests: [  PASSED  ] 58 tests", V),
    ("cpp", "en", "cpp gtest", "e", "`./build/shop_tests` — 61 tests passed", C),
    ("cpp", "en", "cpp gtest", "e", "`clang-format --dry-run --Werror src/cart.cpp` clean", V),
    ("cpp", "zh", "cpp gtest", "e", "`./build/shop_tests`：58 个测试通过", V),
    ("cpp", "en", "cpp red", "e", "`ctest --test-dir build` passes", C),
    ("cpp", "en", "cpp red", "e", "`ctest --test-dir build`: 22 passed, 2 failed", V),
    ("cpp", "en", "cpp red", "s", "All 24 tests pass.", C),
    ("cpp", "en", "cpp catch", "e", "`./build/unit_tests`: all tests passed (310 assertions in 41 test cases)", V),
    ("cpp", "en", "cpp catch", "e", "`./build/unit_tests`: 45 test cases passed", C),
    ("runners", "en", "run make", "e", "`make test` — 77 passed", V),
    ("runners", "en", "run make", "e", "make lint passes", V),
    ("runners", "en", "run make", "e", "`make test` — 79 passed", C),
    ("runners", "en", "run make", "e", "`make docs` builds", C),
    ("runners", "en", "run make", "s", "All 77 tests pass and lint is clean.", V),
    ("runners", "en", "run make", "e", "`pytest` — 77 passed", U),
    ("runners", "fr", "run make", "e", "`make test` : 77 tests réussis", V),
    ("runners", "en", "run nx", "e", "`npx nx run-many -t test` succeeded for 5 projects", V),
    ("runners", "en", "run nx", "e", "`nx run-many -t test` passes", V),
    ("runners", "en", "run nx", "e", "`nx run-many -t lint` passes", C),
    ("runners", "en", "run turbo", "e", "`turbo run test`: 12 successful, 12 total", V),
    ("runners", "en", "run turbo", "e", "`turbo run test`: 14 successful, 14 total", C),
    ("runners", "de", "run turbo", "e", "`turbo run test` erfolgreich (12 Tasks)", V),
    ("runners", "en", "run just", "e", "`just test`: 19 passed", V),
    ("runners", "zh", "run just", "e", "`just test`：19 通过，0 失败", V),
    ("runners", "en", "run just", "e", "`just test`: 21 passed", C),
    ("runners", "en", "run ignored", "e", "`make check` passes", U),
    ("runners", "en", "run ignored", "e", "`make check` exits 0", U),
    ("runners", "en", "run chain", "e", "`make test` — 77 passed", U),
    ("runners", "en", "run chain", "e", "`make lint && make test` passes", U),
    ("runners", "en", "run docker", "e", "`npm test` in the web container: 22 passed", V),
    ("runners", "en", "run docker", "e", "`docker compose run --rm web npm test` — 22 passed", V),
    ("runners", "de", "run docker", "e", "`docker compose run --rm web npm test`: 24 bestanden", C),
    ("python", "en", "h py hatch", "s", "Refactored the loader. Test run: 310 passed, 2 xfailed.", V),
    ("python", "en", "h py hatch", "e", "`hatch run test -n 4` finishes with 310 passed and 2 xfailed", V),
    ("python", "en", "h py hatch", "e", "hatch run lint:all reports no problems", V),
    ("python", "en", "h py hatch", "e", "`hatch run test -n 4`: 312 passed", U),
    ("python", "de", "h py hatch", "s", "Der Loader ist fertig, 310 Tests bestanden.", V),
    ("python", "fr", "h py hatch", "s", "Chargeur refait ; 320 tests réussis.", C),
    ("python", "en", "h py pyright", "e", "pyright src/ is clean", C),
    ("python", "en", "h py pyright", "e", "`pyright src/` reports 3 errors, all pre-existing", U),
    ("python", "en", "h py pyright", "s", "Type checking with pyright passes.", C),
    ("python", "en", "h py nox", "e", "nox -s tests-3.12 succeeded; 128 passed", V),
    ("python", "zh", "h py nox", "e", "`nox -s tests-3.12` 全部通过，共 128 个", V),
    ("python", "en", "h py nox", "e", "`nox -s tests-3.13` passes", U),
    ("python", "en", "h py script", "e", "`python scripts/bench.py --n 100` gives a mean of 12.4 ms", V),
    ("python", "en", "h py script", "e", "`python scripts/bench.py --n 100` gives a mean of 9.1 ms", U),
    ("python", "en", "h py script", "e", "Version check prints 2.4.1", U),
    ("python", "en", "h py edit after", "e", "pytest passes (55 tests)", U),
    ("python", "en", "h py edit after", "s", "55 tests green.", U),
    ("python", "en", "h py alembic", "e", "Migrations apply: `alembic upgrade head` runs without errors", V),
    ("python", "en", "h py alembic", "e", "DB tests (`pytest tests/db -x`): 17 passed", V),
    ("python", "en", "h py alembic", "e", "`alembic downgrade base` works too", C),
    ("js", "en", "h js turbo", "e", "`turbo run lint test --filter=web` → 6 successful", V),
    ("js", "en", "h js turbo", "s", "Lint is clean.", U),
    ("js", "en", "h js cypress", "e", "Cypress login spec: 7 passing", V),
    ("js", "en", "h js cypress", "e", "`npx cypress run --spec cypress/e2e/login.cy.ts` — 7 passing, 0 failing", V),
    ("js", "en", "h js cypress", "e", "`npx cypress run` — 7 passing", U),
    ("js", "en", "h js eslint", "e", "`npx eslint src --max-warnings 0` exits clean after the fix", V),
    ("js", "en", "h js eslint", "s", "ESLint passes.", U),
    ("js", "de", "h js eslint", "e", "`npx eslint src --max-warnings 0` läuft fehlerfrei", V),
    ("js", "en", "h js deno", "e", "deno test -A: 9 passed, 0 failed", V),
    ("js", "en", "h js deno", "e", "`deno lint` checked 14 files, clean", V),
    ("js", "en", "h js deno", "e", "`deno fmt --check` passes", C),
    ("js", "en", "h js pipe", "e", "`npm test` — 96 passed", U),
    ("js", "en", "h js pipe", "e", "`npm test` — 99 passed", C),
    ("js", "en", "h js bg", "e", '`curl -s http://localhost:3000/api/health` → `{"status":"ok"}`', V),
    ("js", "en", "h js bg", "e", "`npm run dev` starts without errors", U),
    ("js", "en", "h js bg", "s", "All unit tests pass.", C),
    ("rust", "en", "h rust doc", "e", "`cargo doc --no-deps` builds", V),
    ("rust", "en", "h rust doc", "e", "cargo check --all-features compiles cleanly", V),
    ("rust", "en", "h rust doc", "s", "The crate compiles and every test passes.", C),
    ("rust", "en", "h rust doc", "e", "`cargo test` — 66 passed", C),
    ("rust", "en", "h rust one", "e", "`cargo test -p shop-core cart::`: 5 passed", V),
    ("rust", "en", "h rust one", "s", "All 66 tests pass.", U),
    ("rust", "ja", "h rust one", "e", "`cargo test -p shop-core cart::` 5 件成功", V),
    ("rust", "en", "h rust warn", "e", "`cargo clippy` has no warnings", U),
    ("rust", "en", "h rust warn", "e", "clippy clean", U),
    ("go", "en", "h go one", "e", "`go test -run TestCart ./cart/...` ok", V),
    ("go", "en", "h go one", "s", "All Go tests pass.", U),
    ("go", "en", "h go one", "e", "gofmt -l . prints nothing", U),
    ("go", "en", "h go cover", "e", "`go test -cover ./...` passes; cart at 81.4 %, api at 74.0 %", V),
    ("go", "en", "h go cover", "e", "`go test -cover ./...`: coverage 90.0 %", U),
    ("go", "fr", "h go cover", "e", "`go test -cover ./...` passe", V),
    ("go", "en", "h go v", "e", "`go test -v ./cart`: TestA and TestB pass", V),
    ("go", "en", "h go v", "e", "`go vet ./...` is clean", C),
    ("jvm", "en", "h jvm one", "e", "`mvn -Dtest=CartTest test`: 9 tests, no failures", V),
    ("jvm", "en", "h jvm one", "e", "CartTest: 9 tests run, 0 failures (mvn -Dtest=CartTest test)", V),
    ("jvm", "en", "h jvm one", "e", "`mvn -Dtest=CartTest test`: 11 tests, no failures", C),
    ("jvm", "en", "h jvm fail", "e", "mvn test passes", C),
    ("jvm", "en", "h jvm fail", "e", "`mvn test`: 50 run, 2 failures, 1 error", V),
    ("jvm", "es", "h jvm fail", "s", "Las 50 pruebas pasan.", C),
    ("jvm", "en", "h jvm build", "e", "`./gradlew build -x test` → BUILD SUCCESSFUL", V),
    ("jvm", "en", "h jvm build", "s", "The build is green and the tests pass.", U),
    ("jvm", "en", "h jvm build", "e", "`./gradlew check` passes", U),
    ("dotnet", "en", "h net", "e", "Unit project: `dotnet test tests/Unit/Unit.csproj` 40/40", V),
    ("dotnet", "en", "h net", "e", "`dotnet publish -c Release -o out` succeeds", V),
    ("dotnet", "en", "h net", "e", "`dotnet test tests/Unit/Unit.csproj` 44/44", C),
    ("dotnet", "pt", "h net", "e", "`dotnet test tests/Unit/Unit.csproj`: 40 testes passaram", V),
    ("dotnet", "en", "h net many", "e", "dotnet test: 51 passed, 1 skipped", V),
    ("dotnet", "en", "h net many", "s", "51 tests pass.", V),
    ("dotnet", "en", "h net many", "s", "55 tests pass.", C),
    ("ruby", "en", "h ruby", "e", "`bundle exec rspec spec/models` — 48 examples, 0 failures", U),
    ("ruby", "en", "h ruby", "e", "bin/rails db:migrate ran fine", V),
    ("ruby", "en", "h ruby", "e", "standardrb is happy", U),
    ("ruby", "en", "h ruby", "e", "`bundle exec standardrb` clean", V),
    ("ruby", "en", "h ruby", "s", "The full suite passes.", U),
    ("ruby", "en", "h ruby red", "s", "The full suite passes.", U),
    ("ruby", "en", "h ruby red", "e", "`bundle exec rspec` passes with 152 examples", U),
    ("ruby", "en", "h ruby red", "e", "`bundle exec rspec spec/a_spec.rb`: 6 examples, 0 failures", V),
    ("php", "en", "h php", "e", "`composer test`: 64 tests, 180 assertions, 2 skipped", V),
    ("php", "en", "h php", "e", "composer run cs-check finds 0 of 80 files to fix", V),
    ("php", "en", "h php", "e", "`composer test`: 70 tests", C),
    ("php", "de", "h php", "e", "`composer test`: 64 Tests, 2 übersprungen", V),
    ("php", "en", "h php psalm", "e", "`vendor/bin/psalm --no-cache` passes", C),
    ("php", "en", "h php psalm", "e", "psalm --no-cache: 2 errors found", V),
    ("cpp", "en", "h cpp make", "e", "`make -C build -j4` builds the target shop", V),
    ("cpp", "en", "h cpp make", "e", "`./build/tests --gtest_filter='Cart.*'`: 6 tests PASSED", V),
    ("cpp", "en", "h cpp make", "s", "All tests pass.", U),
    ("cpp", "en", "h cpp meson", "e", "`meson test -C build`: Ok 3, Fail 0", V),
    ("cpp", "en", "h cpp meson", "e", "meson test -C build: all 3 pass", V),
    ("cpp", "en", "h cpp meson", "e", "`meson test -C build`: Ok 5, Fail 0", C),
    ("cpp", "en", "h cpp bazel", "e", "`bazel test //...` executed 2 out of 2 tests: 2 tests pass", V),
    ("cpp", "fr", "h cpp bazel", "e", "`bazel test //...` : les 2 tests passent", V),
    ("runners", "en", "h run task", "e", "`task ci` passes (ruff + 33 tests)", V),
    ("runners", "en", "h run task", "e", "`task ci`: 35 passed", C),
    ("runners", "en", "h run rake", "e", "rake spec: 20 examples, 0 failures", V),
    ("runners", "en", "h run pre", "e", "`pre-commit run --all-files` passes", V),
    ("runners", "en", "h run pre", "s", "Pre-commit is green.", U),
    ("runners", "en", "h run compose", "e", "`docker compose exec -T api pytest -q`: 140 passed", V),
    ("runners", "en", "h run compose", "e", "`pytest -q` in the api container: 140 passed", V),
    ("runners", "en", "h run compose", "e", "`docker build -t shop .` succeeds", V),
    ("runners", "en", "h run compose", "e", "`docker compose exec -T api mypy .` is clean", C),
    ("runners", "en", "h run none", "s", "Ran the full test suite, everything passes.", C),
    ("runners", "en", "h run none", "e", "`make test` — 12 passed", C),
    ("runners", "en", "h run none", "e", "`docker compose run web rspec`: 40 examples, 0 failures", C),
    ("runners", "zh", "h run none", "e", "`npm test`：全部 20 个测试通过", C),
    ("runners", "de", "h run none", "s", "Alle Tests laufen durch.", C),
    ("python", "en", "h run none", "e", "Skipped `pytest -q`: no database here", U),
    ("js", "zh", "h run none", "e", "未运行 `npm test`", U),
    ("php", "es", "h run none", "e", "No se ejecutó `composer test`", U),
    ("rust", "en", "h run none", "s", "Finished without running `cargo test`.", U),
    ("ruby", "de", "h run none", "e", "`bundle exec rspec` wurde nicht ausgeführt", U),
    ("jvm", "fr", "h run none", "e", "`mvn verify` n'a pas été lancé", U),
    ("dotnet", "en", "h run none", "s", "Please run `dotnet test` once the SDK is there.", U),
    ("go", "ru", "h run none", "e", "`go test ./...` не запускался", U),
    ("cpp", "pt", "h run none", "e", "`ctest` não foi executado", U),
    ("python", "en", "py uv", "e", "`uv run pytest -q tests/unit` passes on Windows", U),
    ("python", "en", "py uv", "s", "The handoff says that `uv run pytest -q tests/unit` must pass.", U),
)
