# One image for every process of the host; docker-compose.yml says which command each one runs.
# lab/containers executes these lines without a container engine.
ARG PYTHON_VERSION=3.11

# The packages that the host needs, in a virtual environment without pip. Files of the build stay in this stage.
FROM python:${PYTHON_VERSION}-slim AS packages
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY requirements.txt requirements-sso.txt requirements-otel.txt ./
# --build-arg SSO=1 adds the packages for single sign-on and for the second factor of the admin.
ARG SSO=
# --build-arg OTEL=1 adds the packages for traces.
ARG OTEL=
RUN python -m venv --without-pip /opt/packages
RUN pip --python /opt/packages/bin/python install --requirement requirements.txt ${SSO:+--requirement requirements-sso.txt} ${OTEL:+--requirement requirements-otel.txt}

FROM python:${PYTHON_VERSION}-slim
ENV PATH=/opt/packages/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# The root file system may be read-only: the host writes to /tmp, and large files to /srv/files.
ENV HOST=0.0.0.0 PORT=8000 VAR_DIR=/tmp/var FILE_STORAGE_OPTIONS='{"location": "/srv/files"}'
RUN useradd --system --uid 10001 --no-create-home host
RUN install --directory --owner=host --mode=700 /srv/files
WORKDIR /host
# The packages change less often than the code, so they have a layer of their own.
COPY --from=packages /opt/packages /opt/packages
COPY manage.py pyproject.toml ./
COPY a2a_host a2a_host
COPY a2a_project a2a_project
COPY a2a_tasks a2a_tasks
COPY a2a_push a2a_push
COPY a2a_console a2a_console
COPY a2a_frameworks a2a_frameworks
COPY a2a_grpc a2a_grpc
COPY a2a_doors a2a_doors
COPY deploy deploy
COPY examples examples
COPY templates templates
RUN python -m compileall -q .
USER 10001
EXPOSE 8000 50051
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/readyz', timeout=3)"]
CMD ["python", "manage.py", "serve"]
