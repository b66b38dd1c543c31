# A Homebrew formula that installs memd from a checkout or a repository; docs/INSTALL.md has the commands.
#
# It has no list of resources: pip resolves memd's dependencies from pyproject.toml, as it does in any other installation,
# so nobody has to keep the addresses and hashes of fifty packages here. A formula for Homebrew's own collection would
# need that list (`brew update-python-resources`); one for a tap does not.
class Memd < Formula
  desc "One memory for every AI tool on a developer's machine"
  license "Apache-2.0"
  # The address of memd's repository, or the path of a checkout.
  head "@SOURCE@", using: :git

  # With this Python hnswlib comes as a wheel.
  depends_on "python@3.12"

  def install
    venv = libexec/"venv"
    system Formula["python@3.12"].opt_bin/"python3.12", "-m", "venv", venv
    system venv/"bin/pip", "install", "--quiet", "#{buildpath}[ingest]"
    bin.install_symlink venv/"bin/memd"
    (man1/"memd.1").write Utils.safe_popen_read(bin/"memd", "man")
    generate_completions_from_executable(bin/"memd", "completion", shells: [:bash, :zsh, :fish])
  end

  def caveats
    <<~TEXT
      To start memd at each login: memd service install
      Before you remove memd: memd uninstall (it keeps your memory)
    TEXT
  end

  test do
    assert_match "memd", shell_output("#{bin}/memd --version")
    system bin/"memd", "demo"
  end
end
