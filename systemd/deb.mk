# SPDX-License-Identifier: Apache-2.0
#
# Debian packages; `make deb` builds them.

# dpkg-buildpackage wants debian/ at the top: it gets a copy of the tree in which that is so.
deb_folder = build/deb/wharf-$(VERSION)
deb_tree   = .ci Makefile README.md LICENSE proto encoders kernels clientlib daemon systemd
# Misspelt words are NVIDIA's, in the library that the GPU's worker is linked with.
lintian    = lintian --allow-root --display-info --suppress-tags spelling-error-in-binary \
    --fail-on error,warning,info

.PHONY: deb
deb: ## build the Debian packages in build/deb and let lintian look at them; NVCC= for no GPU
	$(Q).ci/install-deps build deb
	$(Q)head -n 1 systemd/debian/changelog | grep -qF '($(VERSION))' || \
	    { echo 'systemd/debian/changelog does not begin with version $(VERSION)' >&2; exit 1; }
	$(Q)rm -rf build/deb && mkdir -p $(deb_folder)
	$(Q)cp -r $(deb_tree) $(deb_folder) && mv $(deb_folder)/systemd/debian $(deb_folder)
	$(Q)cd $(deb_folder) && unset MAKEFLAGS MFLAGS MAKELEVEL && \
	    dpkg-buildpackage -us -uc -b -j$(shell nproc) > ../build.log 2>&1 || { tail -n 40 ../build.log; exit 1; }
	$(Q)rm -rf $(deb_folder)
	$(Q)$(lintian) build/deb/*.changes
	@ls build/deb/*.deb
